package issuer

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
)

// MaxLen is the length of the longest accepted token, in bytes. Tokens of other services list roles and are longer than
// ours.
const MaxLen = 8 << 10

// Skew is how far ahead of ours the clock of an issuer may be.
const Skew = 30 * time.Second

// Fetch reads the document at an address. It bounds size and time.
type Fetch func(ctx context.Context, url string) ([]byte, error)

// Verifier verifies the tokens of the configured issuers. It is safe for concurrent use.
type Verifier struct {
	issuers map[string]*keys
	now     func() time.Time
}

// NewVerifier returns a verifier that reads keys by fetch when it first needs them.
func NewVerifier(all []Issuer, fetch Fetch, now func() time.Time) *Verifier {
	v := &Verifier{issuers: map[string]*keys{}, now: now}
	for _, i := range all {
		if i.SubjectClaim == "" {
			i.SubjectClaim = "sub"
		}
		v.issuers[i.Issuer] = newKeys(i, fetch, now)
	}
	return v
}

// Issuers lists the configured issuers, sorted.
func (v *Verifier) Issuers() []string {
	var names []string
	for name := range v.issuers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Names reports whether a text is a token that names a configured issuer. It verifies nothing: it decides only whose
// rules apply to the token.
func (v *Verifier) Names(raw string) bool {
	t, ok := parse(raw)
	return ok && v.issuers[t.issuer] != nil
}

// parsed is a token before its signature is verified.
type parsed struct {
	jose.JWS
	kid, issuer string
}

func refused() error { return fault.New(fault.Unauthenticated, "the token is not valid") }

// Verify returns the bearer of a token: signed by EdDSA, ES256 or RS256 with a published key of its issuer, for the
// configured audience, and within its time. The claim exp is required.
//
// Errors: TOKEN_EXPIRED if only its time is over; UNAVAILABLE if the keys of the issuer cannot be read and were not
// within the last hour; UNAUTHENTICATED otherwise.
func (v *Verifier) Verify(ctx context.Context, raw string) (who Identity, err error) {
	t, ok := parse(raw)
	of := v.issuers[t.issuer]
	if !ok || of == nil {
		return who, refused()
	}
	key, err := of.find(ctx, t.kid)
	if err != nil {
		return who, err
	}
	if !t.By(key) {
		return who, refused()
	}
	return of.judge(t.Claims, v.now())
}

// judge checks the claims of a token whose signature is valid.
func (k *keys) judge(claims map[string]json.RawMessage, now time.Time) (who Identity, err error) {
	who = Identity{Issuer: k.of.Issuer, Subject: jose.Text(claims[k.of.SubjectClaim])}
	var sid string
	if raw, sent := claims["sid"]; sent {
		if sid = jose.Text(raw); sid == "" {
			return Identity{}, refused()
		}
	}
	who.Session, who.Login = session(who.Issuer, who.Subject, sid), login(who.Issuer, who.Subject)
	expires, ok := instant(claims["exp"])
	if !ok || !subject(who.Subject) || !audience(claims["aud"], k.of.Audience) {
		return Identity{}, refused()
	}
	who.ExpiresAt = expires
	for _, name := range []string{"nbf", "iat"} {
		raw, sent := claims[name]
		at, ok := instant(raw)
		if sent && (!ok || at.After(now.Add(Skew))) {
			return Identity{}, refused()
		}
	}
	if !now.Before(expires) {
		return Identity{}, fault.New(fault.TokenExpired, "the token has expired")
	}
	return who, nil
}

// audience reports whether a claim aud, a text or a list of texts, holds a name.
func audience(raw json.RawMessage, name string) bool {
	if one := jose.Text(raw); one != "" {
		return one == name
	}
	var list []string
	return json.Unmarshal(raw, &list) == nil && slices.Contains(list, name)
}

// instant reads seconds since the epoch, which may have a fraction.
func instant(raw json.RawMessage) (time.Time, bool) {
	var seconds float64
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &seconds) != nil || seconds < 0 ||
		seconds > 1e11 {
		return time.Time{}, false
	}
	return time.Unix(int64(math.Floor(seconds)), 0).UTC(), true
}

// embedded are the headers by which a token brings its own key or rules. None of them is needed, so none is accepted;
// jose.Read refuses crit.
var embedded = []string{"jwk", "jku", "x5u", "x5c", "b64", "zip"}

// types are the accepted values of typ, in lower case: of ID tokens and of access tokens (RFC 9068). Others, such as
// logout+jwt, are no credential.
var types = []string{"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"}

// parse reads a token of the compact form without verifying it.
func parse(raw string) (t parsed, ok bool) {
	if t.JWS, ok = jose.Read(raw, MaxLen); !ok {
		return t, false
	}
	for _, name := range embedded {
		if _, sent := t.Head[name]; sent {
			return t, false
		}
	}
	typ, sent := t.Head["typ"]
	if sent && jose.Text(typ) == "" || !slices.Contains(types, strings.ToLower(jose.Text(typ))) {
		return t, false
	}
	t.kid, t.issuer = jose.Text(t.Head["kid"]), jose.Text(t.Claims["iss"])
	return t, t.kid != "" && t.issuer != ""
}
