package passkey

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"

	"github.com/fxamacker/cbor/v2"

	"castellan/domain/kit/jose"
)

// The algorithms of COSE (RFC 9053, RFC 8812) that a passkey may have. Every platform offers the first; older versions
// of Windows only the second.
const (
	algES256 = -7
	algRS256 = -257
)

// The longest RSA key, in bits, and its only exponent.
const (
	maxRSABits  = 4096
	rsaExponent = 65537
)

// Key is the public key of a passkey. The zero Key verifies nothing. It is never the key of a device: no proof that
// an authenticator did not make verifies with it.
type Key struct{ of jose.Key }

// strict reads CBOR by the rules of CTAP2, section 8: one spelling, four levels.
var strict = func() cbor.DecMode {
	mode, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		TagsMd: cbor.TagsForbidden, MaxNestedLevels: 4, MaxArrayElements: 64, MaxMapPairs: 64,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// coseKey is a COSE_Key (RFC 9052, section 7). The members below zero depend on the type.
type coseKey struct {
	Type  int             `cbor:"1,keyasint"`
	Alg   int             `cbor:"3,keyasint"`
	First cbor.RawMessage `cbor:"-1,keyasint"`
	X     []byte          `cbor:"-2,keyasint"` // of EC2; the exponent of RSA
	Y     []byte          `cbor:"-3,keyasint"`
}

// parseCOSE reads the COSE_Key at the start of data, and returns the bytes after it.
func parseCOSE(data []byte) (k Key, rest []byte, ok bool) {
	var c coseKey
	rest, err := strict.UnmarshalFirst(data, &c)
	if err != nil {
		return Key{}, nil, false
	}
	switch {
	case c.Type == 2 && c.Alg == algES256:
		var curve int
		if strict.Unmarshal(c.First, &curve) != nil || curve != 1 {
			return Key{}, nil, false
		}
		k.of = jose.EC(c.X, c.Y)
	case c.Type == 3 && c.Alg == algRS256 && c.Y == nil:
		var n []byte
		if strict.Unmarshal(c.First, &n) != nil {
			return Key{}, nil, false
		}
		k.of = jose.RSA(n, c.X)
		if len(n) == 0 || n[0] == 0 {
			k = Key{}
		}
	}
	return k, rest, k.known()
}

// known reports whether a passkey may have the key.
func (k Key) known() bool {
	switch public := k.of.Public().(type) {
	case *ecdsa.PublicKey:
		return true
	case *rsa.PublicKey:
		return public.N.BitLen() <= maxRSABits && public.E == rsaExponent
	}
	return false
}

// ParseKey reads the form of JWK; ErrKey for anything else.
func ParseKey(jwk []byte) (Key, error) {
	of, err := jose.ParseKey(jwk)
	if k := (Key{of}); err == nil && k.known() && k.JWK() == string(jwk) {
		return k, nil
	}
	return Key{}, ErrKey
}

// JWK returns the key with its required members in the order of RFC 7638; "" for the zero Key.
func (k Key) JWK() string { return k.of.JWK() }

func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.JWK()), nil }

// UnmarshalJSON reads the form of MarshalJSON.
func (k *Key) UnmarshalJSON(jwk []byte) (err error) {
	*k, err = ParseKey(jwk)
	return err
}

// alg returns the COSE algorithm of a key, which is not the zero Key.
func (k Key) alg() int {
	if k.of.Alg() == jose.RS256 {
		return algRS256
	}
	return algES256
}

// verify reports whether sig is the key's signature of signed. The key alone determines the algorithm. An authenticator
// writes a signature of ES256 in ASN.1, and not as JWS does.
func (k Key) verify(signed, sig []byte) bool {
	if ec, is := k.of.Public().(*ecdsa.PublicKey); is {
		sum := sha256.Sum256(signed)
		return ecdsa.VerifyASN1(ec, sum[:], sig)
	}
	return k.of.Verify(jose.RS256, string(signed), sig)
}
