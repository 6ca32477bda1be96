package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Order is what the service tells the wallet to send.
type Order struct {
	Account    string      `json:"account"`
	Address    string      `json:"address"`
	Amount     json.Number `json:"amount"`
	Currency   string      `json:"currency"`
	ExternalID string      `json:"externalId"`
	Fee        json.Number `json:"fee"`
	Network    string      `json:"network"`
	Tag        string      `json:"tag"` // "" for none
}

// orderSkew is how far the clocks of wallet and service may differ.
const orderSkew = time.Minute

// VerifyOrder verifies the order of a claim with the public keys of the service, and returns it. It must be for this
// withdrawal and, with a key (Service), for the service of this name, and it must not have expired. Compare it with
// what the wallet knows, and sign nothing else.
func (c *Client) VerifyOrder(ctx context.Context, withdrawalID, order string) (o Order, err error) {
	parts := strings.Split(order, ".")
	if len(parts) != 3 {
		return o, errors.New("the order is not a JWT")
	}
	var texts [3][]byte
	for i, p := range parts {
		if texts[i], err = base64.RawURLEncoding.Strict().DecodeString(p); err != nil {
			return o, fmt.Errorf("the order is not a JWT: %w", err)
		}
	}
	var head struct {
		Alg  string `json:"alg"`
		Key  string `json:"kid"`
		Type string `json:"typ"`
	}
	if err := json.Unmarshal(texts[0], &head); err != nil || head.Alg != "EdDSA" || head.Type != "withdrawal-order+jwt" {
		return o, errors.New("the JWT is no order of a withdrawal")
	}
	keys, err := c.keys(ctx, head.Key)
	if err != nil {
		return o, err
	}
	signed := []byte(parts[0] + "." + parts[1])
	if !slices.ContainsFunc(keys, func(k ed25519.PublicKey) bool { return ed25519.Verify(k, signed, texts[2]) }) {
		return o, fmt.Errorf("the order is not signed by a key of %s", c.URL)
	}
	var claims struct {
		Audience string          `json:"aud"`
		ID       string          `json:"jti"`
		Expires  int64           `json:"exp"`
		Order    json.RawMessage `json:"order"`
		Digest   string          `json:"digest"`
	}
	if err := json.Unmarshal(texts[1], &claims); err != nil {
		return o, fmt.Errorf("the order: %w", err)
	}
	digest := sha256.Sum256(claims.Order)
	name, _, _ := strings.Cut(c.serviceKey, ".")
	switch {
	case claims.ID != withdrawalID:
		return o, errors.New("the order is of another withdrawal")
	case name != "" && claims.Audience != name:
		return o, fmt.Errorf("the order is not for %s", name)
	case time.Since(time.Unix(claims.Expires, 0)) > orderSkew:
		return o, errors.New("the order has expired")
	case claims.Digest != base64.RawURLEncoding.EncodeToString(digest[:]):
		return o, errors.New("the order does not have its digest")
	}
	d := json.NewDecoder(bytes.NewReader(claims.Order))
	d.DisallowUnknownFields()
	err = d.Decode(&o)
	return o, err
}

// keys reads the public keys of the service with an id.
func (c *Client) keys(ctx context.Context, id string) (keys []ed25519.PublicKey, err error) {
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
			X  string `json:"x"`
		} `json:"keys"`
	}
	if err := c.Call(ctx, http.MethodGet, "/.well-known/jwks.json", nil, &set); err != nil {
		return nil, err
	}
	for _, k := range set.Keys {
		key, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.ID == id && err == nil && len(key) == ed25519.PublicKeySize {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
