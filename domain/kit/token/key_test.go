package token_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
)

const thumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

// A token of a session with a key names the key in cnf.jkt; any other spelling of it is refused.
func TestTokenNamesItsKey(t *testing.T) {
	b := newBench(t)
	c := b.claims(token.XAuth)
	c.Thumbprint = thumbprint
	raw := b.sign(t, b.warm, c)
	header, payload := parts(t, raw)
	if !strings.HasSuffix(payload, `,"cnf":{"jkt":"`+thumbprint+`"}}`) {
		t.Fatal(payload)
	}
	for _, i := range []*token.Issuer{b.warm, b.cold} {
		if got, err := i.Verify(token.XAuth, raw); err != nil || got.Thumbprint != thumbprint {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for name, cnf := range map[string]string{"null": `null`, "empty": `{}`, "empty key": `{"jkt":""}`,
		"a text": `"` + thumbprint + `"`, "two": `{"jkt":"` + thumbprint + `","jkt":"x"}`,
		"more": `{"jkt":"` + thumbprint + `","jwk":{}}`} {
		b.refused(t, "cnf "+name, token.XAuth, b.forge(header, strings.Replace(payload,
			`{"jkt":"`+thumbprint+`"}`, cnf, 1)))
	}
	plain := b.sign(t, b.cold, b.claims(token.XAuth))
	if _, payload := parts(t, plain); strings.Contains(payload, "cnf") {
		t.Error(payload)
	}
}

// VerifyEnded reads a token whose time is over, and refuses all else that Verify refuses.
func TestVerifyEnded(t *testing.T) {
	b := newBench(t)
	c := b.claims(token.XAuth)
	c.Thumbprint = thumbprint
	raw := b.sign(t, b.warm, c)
	for _, after := range []time.Duration{0, 31 * time.Minute, time.Hour} {
		b.now = c.IssuedAt.Add(after)
		for _, i := range []*token.Issuer{b.warm, b.cold} {
			if got, err := i.VerifyEnded(token.XAuth, raw); err != nil || got.Thumbprint != thumbprint ||
				got.SessionID != c.SessionID {
				t.Errorf("after %v: %+v, %v", after, got, err)
			}
			for _, bad := range []string{"", raw[:len(raw)-2], "x" + raw,
				b.sign(t, b.cold, b.claims(token.OTAuth))} {
				_, err := i.VerifyEnded(token.XAuth, bad)
				storetest.Wants(t, err, fault.Unauthenticated)
			}
		}
	}
}
