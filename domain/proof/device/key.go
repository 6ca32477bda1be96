package device

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"

	"filippo.io/edwards25519"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/members"
)

// The algorithms that a proof may name. The key alone determines its algorithm, so an attacker cannot choose another.
const (
	ES256 = "ES256" // ECDSA over P-256 with SHA-256
	EdDSA = "EdDSA" // Ed25519
)

// coordinate is the length in bytes of a coordinate of P-256 and of an Ed25519 key.
const coordinate = 32

// Key is the public key of a device. The zero Key verifies nothing. As JSON it
// is its JWK.
type Key struct {
	ec *ecdsa.PublicKey
	ed ed25519.PublicKey
}

// ParseKey reads a JWK (RFC 7517): EC with P-256, or OKP with Ed25519. INVALID_FIELD for anything else, including a
// private key.
func ParseKey(jwk []byte) (Key, error) {
	bad := fault.Invalid("publicKey", "must be a public JWK: EC with P-256, or OKP with Ed25519")
	all, ok := members.Of(jwk)
	if !ok {
		return Key{}, bad
	}
	if _, private := all["d"]; private {
		return Key{}, fault.Invalid("publicKey", "is a private key; it must never leave the device")
	}
	x, y := field(decode(text(all["x"]))), field(decode(text(all["y"])))
	switch kty, crv := text(all["kty"]), text(all["crv"]); {
	case kty == "EC" && crv == "P-256" && x != nil && y != nil:
		ec, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
		if err != nil {
			return Key{}, bad
		}
		return Key{ec: ec}, nil
	case kty == "OKP" && crv == "Ed25519" && secure(x):
		return Key{ed: x}, nil
	}
	return Key{}, bad
}

// secure reports whether x is the canonical encoding of a point whose signatures need a private key. For a point of
// small order, signatures of any message can be forged. RFC 8032, section 8.4, leaves the check to the protocol.
func secure(x []byte) bool {
	p, err := new(edwards25519.Point).SetBytes(x)
	return err == nil && bytes.Equal(p.Bytes(), x) &&
		new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 0
}

// PublicKey returns the Key of a private one; false for a kind that devices do not have.
func PublicKey(k crypto.Signer) (Key, bool) {
	switch p := k.Public().(type) {
	case *ecdsa.PublicKey:
		return Key{ec: p}, p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return Key{ed: p}, true
	}
	return Key{}, false
}

func field(b []byte) []byte {
	if len(b) != coordinate {
		return nil
	}
	return b
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Alg returns the algorithm of the key; "" for the zero Key.
func (k Key) Alg() string {
	switch {
	case k.ec != nil:
		return ES256
	case k.ed != nil:
		return EdDSA
	}
	return ""
}

// JWK returns the key with its required members in the order of RFC 7638.
func (k Key) JWK() string {
	if k.ec != nil {
		b, err := k.ec.Bytes()
		if err != nil {
			return ""
		}
		return `{"crv":"P-256","kty":"EC","x":"` + encode(b[1:1+coordinate]) + `","y":"` + encode(b[1+coordinate:]) + `"}`
	}
	return `{"crv":"Ed25519","kty":"OKP","x":"` + encode(k.ed) + `"}`
}

// Thumbprint returns the thumbprint of RFC 7638: the name of the key before its device has one.
func (k Key) Thumbprint() string {
	sum := sha256.Sum256([]byte(k.JWK()))
	return encode(sum[:])
}

// MarshalJSON returns the JWK.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.JWK()), nil }

// UnmarshalJSON reads the form of MarshalJSON.
func (k *Key) UnmarshalJSON(jwk []byte) (err error) {
	*k, err = ParseKey(jwk)
	return err
}

// Verify reports whether sig is the key's signature of signed, under the algorithm that the proof names.
func (k Key) Verify(alg string, signed, sig []byte) bool {
	if alg != k.Alg() || len(sig) != 2*coordinate {
		return false
	}
	if k.ed != nil {
		return ed25519.Verify(k.ed, signed, sig)
	}
	if k.ec == nil {
		return false
	}
	sum := sha256.Sum256(signed)
	return ecdsa.Verify(k.ec, sum[:], new(big.Int).SetBytes(sig[:coordinate]), new(big.Int).SetBytes(sig[coordinate:]))
}

// Check reports whether a proof is a signature of the key, and returns its claims. It checks no claim: the caller
// compares them with the request that the proof is for.
func (k Key) Check(raw string) (Claims, bool) {
	p, ok := parse(raw)
	return p.claims, ok && p.By(k)
}

// sign returns a signature that Verify accepts.
func sign(k crypto.Signer, signed []byte) ([]byte, error) {
	switch k := k.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(k, signed), nil
	case *ecdsa.PrivateKey:
		sum := sha256.Sum256(signed)
		r, s, err := ecdsa.Sign(rand.Reader, k, sum[:])
		if err != nil {
			return nil, err
		}
		out := make([]byte, 2*coordinate)
		r.FillBytes(out[:coordinate])
		s.FillBytes(out[coordinate:])
		return out, nil
	}
	return nil, errors.New("device: a key of this kind does not sign proofs")
}

// strangers are the keys that verify the proof of a device that does not exist, so that it takes as long as
// another's.
var strangers = func() map[string]Key {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return map[string]Key{ES256: {ec: &ec.PublicKey}, EdDSA: {ed: ed}}
}()

// text is a JSON string; "" for anything else.
func text(raw json.RawMessage) (s string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
