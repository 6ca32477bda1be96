// Code generated from domain/proof/dpop by tools/subset. DO NOT EDIT.

// Package dpop has what the client needs of domain/proof/dpop.
package dpop

import (
	"crypto"
	"time"

	"castellan/client/internal/device"
	"castellan/client/internal/jose"
)

// typ is the type of a proof, in its header.
const typ = "dpop+jwt"

// TokenHash returns the claim ath of a token: base64url of its SHA-256; "" for no token.
func TokenHash(token string) string { return device.HashBody([]byte(token)) }

// Claims are the statements of a proof (RFC 9449, section 4.2).
type Claims struct {
	Method    string `json:"htm"`
	Target    string `json:"htu"` // URL without query and fragment
	IssuedAt  int64  `json:"iat"` // seconds
	ID        string `json:"jti"`
	TokenHash string `json:"ath,omitempty"`
	Nonce     string `json:"nonce,omitempty"` // issued by the service
}

// Sign creates a proof with the key of a session. It draws an ID if that is empty, and uses the current time if
// IssuedAt is 0.
func Sign(k crypto.Signer, c Claims) (string, error) {
	if c.ID == "" {
		c.ID = device.NewID()
	}
	if c.IssuedAt == 0 {
		c.IssuedAt = time.Now().Unix()
	}
	return jose.Sign(k, func(public jose.Key) any {
		return struct {
			Alg string   `json:"alg"`
			Typ string   `json:"typ"`
			JWK jose.Key `json:"jwk"`
		}{public.Alg(), typ, public}
	}, c)
}
