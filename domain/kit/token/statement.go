package token

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
)

// SignStatement makes a JWT of another type than the classes, such as guard-grant+jwt: a statement of this service for
// another one. claims is a struct whose JSON begins with iss; the same claims give the same text while the key is in
// use, because Ed25519 is deterministic. Any reader verifies it with the JWKS.
func (i *Issuer) SignStatement(typ string, claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("sign %s: %w", typ, err)
	}
	kid, key := i.ring.Signer(i.now())
	b := encoding.AppendEncode(make([]byte, 0, MaxLen/4), []byte(headA+kid+headB+typ+`"}`))
	b = encoding.AppendEncode(append(b, '.'), payload)
	sig := ed25519.Sign(key, b)
	b = encoding.AppendEncode(append(b, '.'), sig)
	if len(b) > 2*MaxLen {
		return "", fmt.Errorf("sign %s: too long, %d bytes", typ, len(b))
	}
	return string(b), nil
}

// ReadStatement reads the claims of a statement of this type that was signed here into claims, a pointer to the struct
// that SignStatement got. It checks no time and no issuer: the caller does. UNAUTHENTICATED for anything else, also for
// another spelling of the same claims.
func (i *Issuer) ReadStatement(typ, raw string, claims any) error {
	refusal := fault.New(fault.Unauthenticated, "the %s is not valid", typ)
	head, rest, _ := strings.Cut(raw, ".")
	body, tail, _ := strings.Cut(rest, ".")
	header, ok1 := jose.Decode(head)
	payload, ok2 := jose.Decode(body)
	sig, ok3 := jose.Decode(tail)
	if len(raw) > 2*MaxLen || !ok1 || !ok2 || !ok3 || len(sig) != ed25519.SignatureSize {
		return refusal
	}
	header, ok1 = bytes.CutPrefix(header, []byte(headA))
	kid, ok2 := bytes.CutSuffix(header, []byte(headB+typ+`"}`))
	if !ok1 || !ok2 {
		return refusal
	}
	key, ok := i.ring.Verifier(string(kid))
	if !ok || !ed25519.Verify(key, []byte(raw[:len(head)+1+len(body)]), sig) || exact(payload, claims) != nil {
		return refusal
	}
	return nil
}
