// Code generated from domain/proof/device by tools/subset. DO NOT EDIT.

// Package device has what the client needs of domain/proof/device.
package device

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

const ES256 = "ES256" // ECDSA over P-256 with SHA-256

const EdDSA = "EdDSA" // Ed25519

// coordinate is the length in bytes of a coordinate of P-256 and of an Ed25519 key.
const coordinate = 32

// Key is the public key of a device. The zero Key verifies nothing. As JSON it
// is its JWK.
type Key struct {
	ec *ecdsa.PublicKey
	ed ed25519.PublicKey
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

// typ is the type of a proof, in its header.
const typ = "device-signature+jwt"

// Claims are the statements of a proof (D-AUTH-06).
type Claims struct {
	Issuer    string `json:"iss"` // the device's id; at the enrolment the key's thumbprint
	Audience  string `json:"aud"` // the public base URL of the service
	Method    string `json:"htm"`
	Target    string `json:"htu"` // path with the raw query, as sent
	IssuedAt  int64  `json:"iat"` // seconds
	ID        string `json:"jti"`
	BodyHash  string `json:"bh,omitempty"` // base64url of the body's SHA-256, if it has a body
	Challenge string `json:"cid,omitempty"`
	MethodID  string `json:"mid,omitempty"`
	Value     string `json:"val,omitempty"`
	Intent    string `json:"int,omitempty"`   // digest of the intent document that was shown (D-EXT-09)
	Nonce     string `json:"nonce,omitempty"` // issued by the service
}

// HashBody returns the claim bh of a body; "" for none.
func HashBody(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(body)
	return encode(sum[:])
}

// Sign creates a proof with the key of a device. It draws an ID if that is empty, and uses the current time if
// IssuedAt is 0.
func Sign(k crypto.Signer, c Claims) (string, error) {
	if c.ID == "" {
		c.ID = NewID()
	}
	if c.IssuedAt == 0 {
		c.IssuedAt = time.Now().Unix()
	}
	return SignAs(k, func(public Key) any {
		return map[string]string{"alg": public.Alg(), "typ": typ, "kid": c.Issuer}
	}, c)
}

// NewID returns a new jti.
func NewID() string { return rand.Text() }

// SignAs creates a compact JWS with the key of a device or of a session. head returns the header for the public key.
func SignAs(k crypto.Signer, head func(public Key) any, claims any) (string, error) {
	public, ok := PublicKey(k)
	if !ok {
		return "", errors.New("device: a key of this kind does not sign proofs")
	}
	header, err := json.Marshal(head(public))
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encode(header) + "." + encode(payload)
	sig, err := sign(k, []byte(signed))
	return signed + "." + encode(sig), err
}
