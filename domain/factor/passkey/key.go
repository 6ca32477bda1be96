package passkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"math/big"

	"github.com/fxamacker/cbor/v2"

	"castellan/domain/kit/members"
)

// The algorithms of COSE (RFC 9053, RFC 8812) that a passkey may have. Every platform offers the first; older versions
// of Windows only the second.
const (
	algES256 = -7
	algRS256 = -257
)

// Bounds of an RSA key, in bits, and its only exponent.
const (
	minRSABits  = 2048
	maxRSABits  = 4096
	rsaExponent = 65537
)

// coordinate is the length of a coordinate of P-256 in bytes.
const coordinate = 32

// Key is the public key of a passkey. The zero Key verifies nothing. It is never the key of a device: no proof that
// an authenticator did not make verifies with it.
type Key struct {
	ec  *ecdsa.PublicKey
	rsa *rsa.PublicKey
}

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
		k, ok = ecKey(c.X, c.Y)
	case c.Type == 3 && c.Alg == algRS256 && c.Y == nil:
		var n []byte
		if strict.Unmarshal(c.First, &n) != nil {
			return Key{}, nil, false
		}
		k, ok = rsaKey(n, c.X)
	}
	return k, rest, ok
}

func ecKey(x, y []byte) (Key, bool) {
	if len(x) != coordinate || len(y) != coordinate {
		return Key{}, false
	}
	ec, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	return Key{ec: ec}, err == nil
}

func rsaKey(n, e []byte) (Key, bool) {
	if len(n) < minRSABits/8 || len(n) > maxRSABits/8 || n[0] == 0 || n[len(n)-1]&1 == 0 {
		return Key{}, false
	}
	modulus, exponent := new(big.Int).SetBytes(n), new(big.Int).SetBytes(e)
	if modulus.BitLen() < minRSABits || len(e) > 4 || exponent.Cmp(big.NewInt(rsaExponent)) != 0 {
		return Key{}, false
	}
	return Key{rsa: &rsa.PublicKey{N: modulus, E: rsaExponent}}, true
}

// ParseKey reads the form of JWK; ErrKey for anything else.
func ParseKey(jwk []byte) (Key, error) {
	all, ok := members.Of(jwk)
	if ok {
		var k Key
		switch text(all["kty"]) {
		case "EC":
			x, _ := decode(text(all["x"]))
			y, _ := decode(text(all["y"]))
			k, ok = ecKey(x, y)
		case "RSA":
			n, _ := decode(text(all["n"]))
			e, _ := decode(text(all["e"]))
			k, ok = rsaKey(n, e)
		}
		if ok && k.JWK() == string(jwk) {
			return k, nil
		}
	}
	return Key{}, ErrKey
}

// JWK returns the key with its required members in the order of RFC 7638; "" for the zero Key.
func (k Key) JWK() string {
	switch {
	case k.ec != nil:
		b, _ := k.ec.Bytes() // a point that was parsed has them
		return `{"crv":"P-256","kty":"EC","x":"` + encode(b[1:1+coordinate]) + `","y":"` + encode(b[1+coordinate:]) + `"}`
	case k.rsa != nil:
		return `{"e":"AQAB","kty":"RSA","n":"` + encode(k.rsa.N.Bytes()) + `"}`
	}
	return ""
}

// MarshalJSON returns the JWK.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.JWK()), nil }

// UnmarshalJSON reads the form of MarshalJSON.
func (k *Key) UnmarshalJSON(jwk []byte) (err error) {
	*k, err = ParseKey(jwk)
	return err
}

// alg returns the COSE algorithm of a key, which is not the zero Key.
func (k Key) alg() int {
	if k.rsa != nil {
		return algRS256
	}
	return algES256
}

// verify reports whether sig is the key's signature of signed. The key alone determines the algorithm.
func (k Key) verify(signed, sig []byte) bool {
	sum := sha256.Sum256(signed)
	switch {
	case k.ec != nil:
		return ecdsa.VerifyASN1(k.ec, sum[:], sig)
	case k.rsa != nil:
		return rsa.VerifyPKCS1v15(k.rsa, crypto.SHA256, sum[:], sig) == nil
	}
	return false
}

// text is a JSON string; "" for anything else.
func text(raw json.RawMessage) (s string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
