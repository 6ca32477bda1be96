package issuer

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Keys rotate: a new one is known after a minute at the latest, and an old one is refused then. An unknown kid causes
// one request a minute. The keys of an issuer that fails are kept for an hour.
func TestKeysRotate(t *testing.T) {
	all := newSigners(t)
	now, asked, down := start, 0, false
	published := set(t, signers{"ed": all["ed"]})
	v := NewVerifier([]Issuer{issuerOne}, func(_ context.Context, url string) ([]byte, error) {
		if asked++; url != issuerOne.JWKSURL || down {
			return nil, errors.New("down")
		}
		return published, nil
	}, func() time.Time { return now })
	wants := func(kid string, code fault.Code, times int) {
		t.Helper()
		claims := with(claims(), map[string]any{"exp": now.Add(time.Minute).Unix()})
		_, err := v.Verify(t.Context(), sign(t, all[kid], header(kid), claims))
		if fault.CodeOf(err) != code || asked != times {
			t.Errorf("%s after %v: %v, asked %d times; want %q and %d", kid, now.Sub(start), err, asked, code, times)
		}
	}
	wants("ed", "", 1)
	for range 10 {
		wants("ec", fault.Unauthenticated, 1)
	}
	published = set(t, signers{"ec": all["ec"]})
	now = start.Add(Every - time.Millisecond)
	wants("ec", fault.Unauthenticated, 1)
	wants("ed", "", 1)
	now = start.Add(Every)
	wants("ed", fault.Unauthenticated, 2)
	wants("ec", "", 2)
	down = true
	for i := 1; i < 60; i++ {
		now = start.Add(Every + time.Duration(i)*time.Minute)
		wants("ec", "", 2+i)
		wants("ed", fault.Unauthenticated, 2+i)
	}
	now = start.Add(Every + Kept - time.Millisecond)
	wants("ec", "", 61)
	now = start.Add(Every + Kept)
	wants("ec", fault.Unavailable, 62)
	down = false
	wants("ec", fault.Unavailable, 62)
	now = now.Add(Every)
	wants("ec", "", 63)
	for _, body := range []string{"", "[]", "{}", `{"keys":null}`, `{"keys":{}}`, "<html>",
		`{"keys":[` + strings.Repeat("{},", maxKeys) + "{}]}"} {
		published = []byte(body)
		now = now.Add(Every)
		if _, err := v.Verify(t.Context(), sign(t, all["ec"], header("ec"),
			with(claims(), map[string]any{"exp": now.Add(time.Minute).Unix()}))); err != nil {
			t.Errorf("after %q: %v", body, err)
		}
	}
}

// Of many callers one asks, and those with a known key do not wait for it.
func TestOneCallerAsks(t *testing.T) {
	all := newSigners(t)
	now, asked := start, 0
	entered, answer := make(chan struct{}), make(chan struct{})
	published := set(t, signers{"ed": all["ed"]})
	v := NewVerifier([]Issuer{issuerOne}, func(context.Context, string) ([]byte, error) {
		if asked++; asked > 1 {
			close(entered)
			<-answer
		}
		return published, nil
	}, func() time.Time { return now })
	good := sign(t, all["ed"], header("ed"), with(claims(), map[string]any{"exp": start.Add(time.Hour).Unix()}))
	ask := func(ctx context.Context, raw string) error { _, err := v.Verify(ctx, raw); return err }
	storetest.Must(t, ask(t.Context(), good))
	now = start.Add(Every)
	done := make(chan error)
	go func() { done <- ask(t.Context(), good) }()
	<-entered
	for range 100 {
		storetest.Must(t, ask(t.Context(), good))
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	unknown := sign(t, all["ec"], header("ec"), claims())
	storetest.Is(t, ask(gone, unknown), context.Canceled, "a caller that left")
	close(answer)
	storetest.Must(t, <-done)
	storetest.Equal(t, asked, 2, "asked", "times")
}

// An issuer may publish 64 keys. A kid that is published twice names no key.
func TestNumberOfKeys(t *testing.T) {
	all := newSigners(t)
	key := func(kid string) string {
		text := storetest.Value(json.Marshal(jwk(t, kid, all["ed"])))(t)
		return string(text)
	}
	verify := func(kid string, published ...string) error {
		v := NewVerifier([]Issuer{issuerOne}, func(context.Context, string) ([]byte, error) {
			return []byte(`{"keys":[` + strings.Join(published, ",") + `]}`), nil
		}, func() time.Time { return start })
		head := with(header("ed"), map[string]any{"kid": kid})
		_, err := v.Verify(t.Context(), sign(t, all["ed"], head, claims()))
		return err
	}
	many := []string{key("mine")}
	for n := range 63 {
		many = append(many, key(fmt.Sprint("k", n)))
	}
	storetest.Must(t, verify("mine", many...))
	storetest.Wants(t, verify("mine", append(many, key("more"))...), fault.Unavailable)
	storetest.Wants(t, verify("mine", key("mine"), key("other"), key("mine")), fault.Unauthenticated)
	storetest.Wants(t, verify("mine", key("mine"), key("mine"), key("mine")), fault.Unauthenticated)
	storetest.Must(t, verify("other", key("mine"), key("other"), key("mine")))
}

// A published key of RSA has a kid and is for signatures by RS256. jose knows the bounds of its numbers.
func TestKeysOfRSA(t *testing.T) {
	n := make([]byte, 256) // 2048 bits
	n[0], n[255] = 0x80, 1
	for text, want := range map[string]bool{
		`{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}`:               true,
		`{"kty":"RSA","kid":"k","n":%q,"e":"AQ"}`:                 false,
		`{"kty":"RSA","kid":"k","n":"!%s","e":"AQAB"}`:            false,
		`{"kty":"RSA","kid":"k","n":%q,"e":"!"}`:                  false,
		`{"kty":"RSA","kid":"k","n":%q,"e":"AQAB","d":"AA"}`:      false,
		`{"kty":"RSA","n":%q,"e":"AQAB"}`:                         false,
		`{"kty":"RSA","kid":"k","use":"enc","n":%q,"e":"AQAB"}`:   false,
		`{"kty":"RSA","kid":"k","alg":"RS512","n":%q,"e":"AQAB"}`: false,
		"": false,
	} {
		if _, k, ok := parseKey(fmt.Appendf(nil, text, b64(n))); ok != want || want && k.Alg() != "RS256" {
			t.Errorf("%s: %t", text, ok)
		}
	}
}

// No text but the token itself is accepted.
func FuzzVerify(f *testing.F) {
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	t := &testing.T{}
	v := NewVerifier([]Issuer{issuerOne}, func(context.Context, string) ([]byte, error) {
		return set(t, signers{"ed": ed}), nil
	}, func() time.Time { return start })
	good := sign(t, ed, header("ed"), claims())
	f.Add(good)
	f.Add(good + ".")
	f.Fuzz(func(t *testing.T, raw string) {
		if _, err := v.Verify(t.Context(), raw); err == nil && raw != good {
			t.Errorf("accepted %q", raw)
		}
	})
}
