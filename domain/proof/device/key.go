package device

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
)

// The algorithms that a proof may name. The key alone determines its algorithm, so an attacker cannot choose another.
const (
	ES256 = jose.ES256
	EdDSA = jose.EdDSA
)

// Key is the public key of a device. The zero Key verifies nothing. As JSON it is its JWK, and its thumbprint is the
// name of the key before its device has one.
type Key struct{ jose.Key }

// ParseKey reads a JWK (RFC 7517): EC with P-256, or OKP with Ed25519. INVALID_FIELD for anything else, including a
// private key.
func ParseKey(jwk []byte) (Key, error) {
	k, err := jose.ParseKey(jwk)
	switch {
	case errors.Is(err, jose.ErrPrivate):
		return Key{}, fault.Invalid("publicKey", "is a private key; it must never leave the device")
	case err != nil || k.Alg() == jose.RS256:
		return Key{}, fault.Invalid("publicKey", "must be a public JWK: EC with P-256, or OKP with Ed25519")
	}
	return Key{k}, nil
}

// PublicKey returns the Key of a private one; false for a kind that devices do not have.
func PublicKey(k crypto.Signer) (Key, bool) {
	public, ok := jose.PublicKey(k)
	return Key{public}, ok
}

// UnmarshalJSON reads the form of MarshalJSON.
func (k *Key) UnmarshalJSON(jwk []byte) (err error) {
	*k, err = ParseKey(jwk)
	return err
}

// Check reports whether a proof is a signature of the key, and returns its claims. It checks no claim: the caller
// compares them with the request that the proof is for.
func (k Key) Check(raw string) (Claims, bool) {
	p, ok := parse(raw)
	return p.claims, ok && p.By(k.Key)
}

// strangers are the keys that verify the proof of a device that does not exist, so that it takes as long as
// another's.
var strangers = func() map[string]Key {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	one, _ := PublicKey(ec)
	other, _ := PublicKey(ed)
	return map[string]Key{ES256: one, EdDSA: other}
}()
