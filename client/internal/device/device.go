// Code generated from domain/proof/device by tools/subset. DO NOT EDIT.

// Package device has what the client needs of domain/proof/device.
package device

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"castellan/client/internal/jose"
)

// Key is the public key of a device. The zero Key verifies nothing. As JSON it is its JWK, and its thumbprint is the
// name of the key before its device has one.
type Key struct{ jose.Key }

// PublicKey returns the Key of a private one; false for a kind that devices do not have.
func PublicKey(k crypto.Signer) (Key, bool) {
	public, ok := jose.PublicKey(k)
	return Key{public}, ok
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
	return jose.Encode(sum[:])
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
	return jose.Sign(k, func(public jose.Key) any {
		return map[string]string{"alg": public.Alg(), "typ": typ, "kid": c.Issuer}
	}, c)
}

// NewID returns a new jti.
func NewID() string { return rand.Text() }
