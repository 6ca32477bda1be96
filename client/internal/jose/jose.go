// Code generated from domain/kit/jose by tools/subset. DO NOT EDIT.

// Package jose has what the client needs of domain/kit/jose.
package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// Sign creates a compact JWS with the key of a device or of a session. head returns the header for the public key.
func Sign(k crypto.Signer, head func(public Key) any, claims any) (string, error) {
	public, ok := PublicKey(k)
	if !ok {
		return "", errors.New("jose: a key of this kind does not sign")
	}
	header, err := json.Marshal(head(public))
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := Encode(header) + "." + Encode(payload)
	sig, err := public.method.Sign(signed, k)
	return signed + "." + Encode(sig), err
}

// Encode writes base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// coordinate is the length in bytes of a coordinate of P-256 and of an Ed25519 key.
const coordinate = 32

// Key is a public key with the one algorithm that it is used with. The zero Key verifies nothing. As JSON it is its
// JWK.
type Key struct {
	method jwt.SigningMethod
	public crypto.PublicKey // what the method takes
}

// PublicKey returns the Key of a private one that signs with ES256 or EdDSA; false for any other.
func PublicKey(k crypto.Signer) (Key, bool) {
	if k == nil {
		return Key{}, false
	}
	switch p := k.Public().(type) {
	case *ecdsa.PublicKey:
		return Key{jwt.SigningMethodES256, p}, p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return Key{jwt.SigningMethodEdDSA, p}, true
	}
	return Key{}, false
}

// Public returns the key for the functions of its algorithm; nil for the zero Key.
func (k Key) Public() crypto.PublicKey { return k.public }

// Alg returns the algorithm of the key; "" for the zero Key.
func (k Key) Alg() string {
	if k.method == nil {
		return ""
	}
	return k.method.Alg()
}

// JWK returns the key with its required members in the order of RFC 7638; "" for the zero Key.
func (k Key) JWK() string {
	switch p := k.public.(type) {
	case *ecdsa.PublicKey:
		b, err := p.Bytes()
		if err != nil {
			return ""
		}
		return `{"crv":"P-256","kty":"EC","x":"` + Encode(b[1:1+coordinate]) + `","y":"` + Encode(b[1+coordinate:]) + `"}`
	case ed25519.PublicKey:
		return `{"crv":"Ed25519","kty":"OKP","x":"` + Encode(p) + `"}`
	case *rsa.PublicKey:
		return `{"e":"` + Encode(big.NewInt(int64(p.E)).Bytes()) + `","kty":"RSA","n":"` + Encode(p.N.Bytes()) + `"}`
	}
	return ""
}

// Thumbprint returns the thumbprint of RFC 7638.
func (k Key) Thumbprint() string {
	sum := sha256.Sum256([]byte(k.JWK()))
	return Encode(sum[:])
}

func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.JWK()), nil }
