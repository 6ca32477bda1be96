package token

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/keyring"
)

// MaxLen is the length of the longest accepted token, in bytes.
const MaxLen = 4 << 10

// The header of a token is headA, the id of its key, headB, its class, headC.
const (
	headA = `{"alg":"EdDSA","kid":"`
	headB = `","typ":"`
	headC = `+jwt"}`
)

var encoding = base64.RawURLEncoding

// Issuer signs and verifies the tokens of one issuer and tenant. It caches valid tokens, so that the signature of a
// token that comes with every request is checked once. It is safe for concurrent use.
type Issuer struct {
	ring           *keyring.Ring
	issuer, tenant string
	now            func() time.Time
	memory         *memory
}

// NewIssuer returns an issuer that caches at most capacity tokens, about 400 bytes each; 0 disables the cache.
func NewIssuer(ring *keyring.Ring, issuer, tenant string, now func() time.Time, capacity int) *Issuer {
	return &Issuer{ring, issuer, tenant, now, newMemory(capacity)}
}

// Sign makes a token of c.Class with the key in use and caches it. The tenant is the issuer's; fields that the class
// does not have are omitted. Times are truncated to seconds, so a token may end up to a second early. The error is a
// programming error: missing claims, or too many.
func (i *Issuer) Sign(c Claims) (string, error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	c = c.normal(i.tenant)
	payload, err := encode(i.issuer, c)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	now := i.now()
	kid, key := i.ring.Signer(now)
	b := make([]byte, 0, MaxLen/8)
	b = encoding.AppendEncode(b, []byte(headA+kid+headB+string(c.Class)+headC))
	b = append(b, '.')
	b = encoding.AppendEncode(b, payload)
	sig := ed25519.Sign(key, b)
	b = append(b, '.')
	b = encoding.AppendEncode(b, sig)
	if len(b) > MaxLen {
		return "", fmt.Errorf("sign token: too long, %d bytes", len(b))
	}
	e := newEntry(kid, c)
	e.sum = sha256.Sum256(b)
	i.memory.put(e, now)
	return string(b), nil
}

// Verify returns the claims of a token of the class that was signed here and has not ended. TOKEN_EXPIRED if only its
// time is over. UNAUTHENTICATED if the token is absent, of another class, issuer or tenant, not exactly as it was
// signed, or signed with a key that has ended. Verify never blocks, except for the read that an unknown key may cause
// once a second (keyring.Ring.Verifier).
func (i *Issuer) Verify(class Class, raw string) (Claims, error) {
	switch {
	case raw == "":
		return Claims{}, fault.New(fault.Unauthenticated, "the %s token is missing", class)
	case len(raw) > MaxLen:
		return Claims{}, refused(class)
	}
	now, sum := i.now(), digest(raw)
	if e := i.memory.get(sum); e != nil {
		if _, live := i.ring.Verifier(e.kid); !live || e.class != class {
			return Claims{}, refused(class)
		}
		if e.ended(now) {
			i.memory.drop(sum)
			return Claims{}, expired(class)
		}
		return e.read(i.tenant), nil
	}
	kid, c, ok := i.parse(class, raw)
	if !ok {
		return Claims{}, refused(class)
	}
	if c.ended(now) {
		return Claims{}, expired(class)
	}
	e := newEntry(kid, c)
	e.sum = sum
	i.memory.put(e, now)
	return c, nil
}

// VerifyEnded is Verify for a token whose time may be over: TOKEN_EXPIRED cannot occur. It is for renewals only.
func (i *Issuer) VerifyEnded(class Class, raw string) (Claims, error) {
	c, err := i.Verify(class, raw)
	if fault.CodeOf(err) != fault.TokenExpired {
		return c, err
	}
	if _, c, ok := i.parse(class, raw); ok {
		return c, nil
	}
	return Claims{}, refused(class)
}

func expired(class Class) error {
	return fault.New(fault.TokenExpired, "the %s token has expired", class)
}

func refused(class Class) error {
	return fault.New(fault.Unauthenticated, "the %s token is not valid", class)
}

// parse checks everything about a token except its time.
func (i *Issuer) parse(class Class, raw string) (kid string, c Claims, ok bool) {
	head, rest, _ := strings.Cut(raw, ".")
	body, tail, _ := strings.Cut(rest, ".")
	header, ok1 := jose.Decode(head)
	payload, ok2 := jose.Decode(body)
	sig, ok3 := jose.Decode(tail) // a further dot is not base64
	if !ok1 || !ok2 || !ok3 || len(sig) != ed25519.SignatureSize {
		return "", c, false
	}
	header, ok1 = bytes.CutPrefix(header, []byte(headA))
	name, ok2 := bytes.CutSuffix(header, []byte(headB+string(class)+headC))
	if !ok1 || !ok2 {
		return "", c, false
	}
	kid = string(name)
	key, ok := i.ring.Verifier(kid) // accepts ids of its own form only: no quotes or paths
	if !ok || !ed25519.Verify(key, []byte(raw[:len(head)+1+len(body)]), sig) {
		return "", c, false
	}
	issuer, c, err := decode(class, payload)
	if err != nil || issuer != i.issuer || c.Tenant != i.tenant || c.Class != class {
		return "", c, false
	}
	return kid, c, true
}

// digest returns the SHA-256 of a whole token. For tokens of this service the copy stays on the stack.
func digest(raw string) [sha256.Size]byte {
	var b [1 << 10]byte
	if len(raw) <= len(b) {
		return sha256.Sum256(b[:copy(b[:], raw)])
	}
	return sha256.Sum256([]byte(raw))
}
