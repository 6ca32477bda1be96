// Package jose reads the keys and signatures of others, and writes those of devices: JWK (RFC 7517) and the compact
// form of JWS (RFC 7515).
//
// The one idea: the key alone determines its algorithm, and a signature must name that one, so an attacker cannot
// choose another. Signatures are the work of golang-jwt. The reading is not: a library takes the last of two members
// and skips an extension that it does not know, so another reader could understand the same text differently. The
// reader of a token decides what it must contain.
//
// Start reading at Read and ParseKey.
package jose

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// JWS is a compact JWS in its parts; nothing of it is verified yet.
type JWS struct {
	Alg          string
	Head, Claims map[string]json.RawMessage
	signed       string
	sig          []byte
}

// Read reads a compact JWS of at most longest bytes, whose payload is an object. It is strict: one spelling, without
// padding, no repeated member, no critical extension. false, and no part, for anything else.
func Read(raw string, longest int) (s JWS, ok bool) {
	head, rest, _ := strings.Cut(raw, ".")
	body, tail, _ := strings.Cut(rest, ".") // a further dot is not base64
	sig, ok := Decode(tail)
	if !ok || len(raw) > longest || len(sig) == 0 {
		return JWS{}, false
	}
	s = JWS{signed: raw[:len(head)+1+len(body)], sig: sig}
	var okClaims bool
	s.Head, ok = object(head)
	s.Claims, okClaims = object(body)
	s.Alg = Text(s.Head["alg"])
	if _, critical := s.Head["crit"]; critical || !ok || !okClaims {
		return JWS{}, false
	}
	return s, true
}

func object(part string) (map[string]json.RawMessage, bool) {
	b, ok := Decode(part)
	if !ok {
		return nil, false
	}
	return Members(b)
}

// By reports whether the key signed it.
func (s JWS) By(k Key) bool { return k.Verify(s.Alg, s.signed, s.sig) }

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

// Text is a JSON string; "" for anything else.
func Text(raw json.RawMessage) (s string) {
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Encode writes base64url without padding.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Decode reads base64url in its one spelling, without padding; false for anything else.
func Decode(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // the decoder would skip them
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return b, err == nil
}
