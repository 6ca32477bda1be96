package keyring

import (
	"crypto/ed25519"
	"encoding/json"
	"time"

	"castellan/domain/kit/jose"
)

// Signer returns the signing key in use at now and its id. The key is shared:
// the caller must not change it.
func (r *Ring) Signer(now time.Time) (kid string, private ed25519.PrivateKey) {
	k := current(r.view.Load().signing, now)
	return k.ID, k.private
}

// Verifier returns the public key with an id; false if it does not exist or has ended. An unknown id causes at most one
// read of the store a second; a failed read counts as not found.
func (r *Ring) Verifier(kid string) (ed25519.PublicKey, bool) {
	k, _ := r.find(kid, Signing)
	if k == nil || k.ended(r.now()) {
		return nil, false
	}
	return k.public, true
}

// Thumbprints returns the thumbprints (RFC 7638) of all signing keys by their ids, also of those that have ended: what
// they signed may still be read.
func (r *Ring) Thumbprints() map[string]string {
	out := map[string]string{}
	for _, k := range r.view.Load().signing {
		public, _ := jose.PublicKey(k.private)
		out[k.ID] = public.Thumbprint()
	}
	return out
}

// jwks is the key set of a view, good until one of its keys ends.
type jwks struct {
	of    *view
	until time.Time // zero: as long as the view
	text  []byte
}

// jwk is an Ed25519 public key of RFC 7517 and RFC 8037.
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	ID    string `json:"kid"`
	X     string `json:"x"`
}

// JWKS returns the public signing keys as a JSON Web Key Set, newest first: keys in use, future keys, and old keys with
// tokens that have not ended. The caller must not change it.
func (r *Ring) JWKS() []byte {
	v, now := r.view.Load(), r.now()
	if c := r.jwks.Load(); c != nil && c.of == v && (c.until.IsZero() || now.Before(c.until)) {
		return c.text
	}
	c := &jwks{of: v}
	set := struct {
		Keys []jwk `json:"keys"`
	}{[]jwk{}}
	for _, k := range v.signing {
		if k.ended(now) {
			continue
		}
		if end := k.RetiredAt; !end.IsZero() && (c.until.IsZero() || end.Before(c.until)) {
			c.until = end
		}
		set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", "sig", "EdDSA", k.ID, jose.Encode(k.public)})
	}
	c.text, _ = json.Marshal(set) // strings only: it cannot fail
	r.jwks.Store(c)
	return c.text
}
