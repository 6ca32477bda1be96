package token_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
)

// No part of a valid token may be changed, and its text has no second form.
func TestEveryCharacterCounts(t *testing.T) {
	b := newBench(t)
	c := b.claims(token.PAuth)
	raw := b.sign(t, b.warm, c)
	for !strings.ContainsAny(raw, "-_") { // the characters that differ between the alphabets
		c.ID += "x"
		raw = b.sign(t, b.warm, c)
	}
	for n := range len(raw) {
		b.refused(t, fmt.Sprintf("first %d characters", n), token.PAuth, raw[:n])
		for bit := range 8 {
			bad := []byte(raw)
			bad[n] ^= 1 << bit
			b.refused(t, fmt.Sprintf("character %d, bit %d flipped", n, bit), token.PAuth, string(bad))
		}
		if c := raw[n]; c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			b.refused(t, fmt.Sprintf("case of character %d", n), token.PAuth, raw[:n]+string(c^0x20)+raw[n+1:])
		}
	}
	p := strings.Split(raw, ".")
	std := strings.NewReplacer("-", "+", "_", "/")
	for what, bad := range map[string]string{
		"standard alphabet": std.Replace(raw),
		"padded":            p[0] + "." + p[1] + "." + p[2] + "==",
		"padded header":     p[0] + "=." + p[1] + "." + p[2],
		"line break inside": raw[:40] + "\n" + raw[40:],
		"CR inside":         raw[:40] + "\r" + raw[40:],
		"break at the end":  raw + "\n",
		"break, signature":  raw[:len(raw)-3] + "\r\n" + raw[len(raw)-3:],
		"space in front":    " " + raw,
		"space behind":      raw + " ",
		"tab":               raw + "\t",
		"NUL":               raw + "\x00",
		"four parts":        raw + ".",
		"twice":             raw + "." + raw,
		"two parts":         p[0] + "." + p[1],
		"one part":          p[0],
		"no signature":      p[0] + "." + p[1] + ".",
		"no header":         "." + p[1] + "." + p[2],
		"Bearer":            "Bearer " + raw,
		"quoted":            `"` + raw + `"`,
		"longer signature":  raw + "AAAA",
		"upper case":        strings.ToUpper(raw),
		"too long":          raw + strings.Repeat("A", 4096),
	} {
		b.refused(t, what, token.PAuth, bad)
	}
	// The last character has bits that are not part of the data.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	at := strings.IndexByte(alphabet, raw[len(raw)-1])
	for low := 1; low < 16; low++ {
		b.refused(t, "trailing bits", token.PAuth, raw[:len(raw)-1]+string(alphabet[at|low]))
	}
	for _, i := range []*token.Issuer{b.warm, b.cold} {
		storetest.Value(i.Verify(token.PAuth, raw))(t)
	}
}

func TestLength(t *testing.T) {
	b := newBench(t)
	header, payload := parts(t, b.sign(t, b.cold, b.claims(token.XAuth)))
	sized := func(n int) string { // a role of this length
		return b.forge(header, strings.Replace(payload, `"user"`, `"`+strings.Repeat("r", n)+`"`, 1))
	}
	fits := 0
	for n := 2500; len(sized(n)) <= 4096; n++ {
		fits = n
	}
	storetest.Value(b.cold.Verify(token.XAuth, sized(fits)))(t)
	b.refused(t, "too long, but well signed", token.XAuth, sized(fits+1))
}

func TestMissing(t *testing.T) {
	b := newBench(t)
	_, err := b.warm.Verify(token.XAuth, "")
	if fault.CodeOf(err) != fault.Unauthenticated || !strings.Contains(err.Error(), "missing") {
		t.Error(err)
	}
}

func TestExpiry(t *testing.T) {
	b := newBench(t)
	raw := b.sign(t, b.warm, b.claims(token.XAuth))
	end := b.now.Truncate(time.Second).Add(30 * time.Minute)
	for _, i := range []*token.Issuer{b.warm, b.cold} {
		b.now = end.Add(-time.Nanosecond)
		storetest.Value(i.Verify(token.XAuth, raw))(t)
		for _, late := range []time.Duration{0, time.Hour} {
			b.now = end.Add(late)
			if c, err := i.Verify(token.XAuth, raw); fault.CodeOf(err) != fault.TokenExpired ||
				!reflect.DeepEqual(c, token.Claims{}) {
				t.Errorf("%v after the end: %v, %v", late, c, err)
			}
		}
		b.now = end.Add(-time.Second) // the clock was set back
		storetest.Value(i.Verify(token.XAuth, raw))(t)
	}
	// A token with another fault is not reported as expired.
	b.now = end
	b.refused(t, "expired and of another class", token.PAuth, raw)
	b.refused(t, "expired and changed", token.XAuth, raw[:len(raw)-4]+"AAAA")
}

func TestRetiredKey(t *testing.T) {
	b := newBench(t)
	const life = 30 * time.Minute
	raw := b.sign(t, b.warm, b.claims(token.XAuth))
	long := b.claims(token.XAuth)
	long.ExpiresAt = b.now.Add(24 * time.Hour) // outlives its key
	longRaw := b.sign(t, b.warm, long)
	rotate := func(force bool) {
		t.Helper()
		storetest.Value(b.keeper.Rotate(t.Context(), keyring.Signing, life, force))(t)
		storetest.Must(t, b.keeper.Reload(t.Context()))
	}
	good := func(what, raw string) {
		t.Helper()
		for _, i := range []*token.Issuer{b.warm, b.cold} {
			storetest.Value(i.Verify(token.XAuth, raw))(t)
		}
	}
	rotate(false)
	good("after the rotation", raw)
	b.now = b.now.Add(keyring.Notice)
	second := b.sign(t, b.warm, b.claims(token.XAuth))
	if h1, _ := parts(t, raw); strings.HasPrefix(second, enc(h1)) {
		t.Error("the new key does not sign")
	}
	good("of the new key", second)
	b.now = b.now.Add(life - time.Millisecond)
	good("before its key ends", longRaw)
	b.now = b.now.Add(time.Millisecond)
	b.refused(t, "its key has ended", token.XAuth, longRaw)

	third := b.sign(t, b.warm, b.claims(token.XAuth))
	rotate(false)
	good("before force", third)
	rotate(true)
	b.refused(t, "its key was ended by force", token.XAuth, third)
}

// A token that another node signed with a key this one has not read yet.
func TestKeyOfAnotherNode(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s, file := &keyringtest.Memory{}, filepath.Join(t.TempDir(), "master.key")
	open := func() (*keyring.Keeper, *token.Issuer) {
		k := storetest.Value(keyring.Open(t.Context(), s, file, true, clock))(t)
		return k, token.NewIssuer(k.Ring(), issuerURL, "default", clock, 10)
	}
	k, a := open()
	_, b := open()
	storetest.Value(k.Rotate(t.Context(), keyring.Signing, time.Hour, false))(t)
	storetest.Must(t, k.Reload(t.Context()))
	now = now.Add(keyring.Notice)
	raw := storetest.Value(a.Sign(session(now)))(t)
	storetest.Value(b.Verify(token.XAuth, raw))(t)
}

func TestSignRefusesIncompleteClaims(t *testing.T) {
	b := newBench(t)
	for what, change := range map[string]func(*token.Claims){
		"class":     func(c *token.Claims) { c.Class = "cron" },
		"id":        func(c *token.Claims) { c.ID = "" },
		"issued":    func(c *token.Claims) { c.IssuedAt = time.Time{} },
		"expiry":    func(c *token.Claims) { c.ExpiresAt = time.Time{} },
		"no life":   func(c *token.Claims) { c.ExpiresAt = c.IssuedAt },
		"subject":   func(c *token.Claims) { c.Subject = "" },
		"session":   func(c *token.Claims) { c.SessionID = "" },
		"auth time": func(c *token.Claims) { c.AuthTime = time.Time{} },
		"challenge": func(c *token.Claims) { c.Class, c.ChallengeID = token.PAuth, "" },
		"too long":  func(c *token.Claims) { c.Roles = slices.Repeat([]string{"a role"}, 1000) },
	} {
		c := b.claims(token.XAuth)
		change(&c)
		if raw, err := b.warm.Sign(c); err == nil || raw != "" {
			t.Errorf("%s: signed", what)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	i := token.NewIssuer(keyringtest.Ring(t, nil), issuerURL, "default", time.Now, 8)
	var done sync.WaitGroup
	for g := range 8 {
		done.Go(func() {
			for n := range 50 {
				c := session(time.Now())
				c.ID, c.SV = fmt.Sprint(g, "-", n), int64(g)
				raw, err := i.Sign(c)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := i.Verify(token.XAuth, raw)
				if err != nil || got.ID != c.ID || got.SV != c.SV {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	done.Wait()
}

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
		storetest.Equal(t, storetest.Value(i.Verify(token.XAuth, raw))(t).Thumbprint, thumbprint)
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

// A statement is read back exactly as it was signed; another type, class, byte or key is refused.
func TestStatement(t *testing.T) {
	type grant struct {
		Issuer  string `json:"iss"`
		Subject string `json:"sub"`
	}
	i := token.NewIssuer(keyringtest.Ring(t, time.Now), "castellan", "default", time.Now, 0)
	raw := storetest.Value(i.SignStatement("guard-grant+jwt", grant{"castellan", "u1"}))(t)
	again, _ := i.SignStatement("guard-grant+jwt", grant{"castellan", "u1"})
	var got grant
	if err := i.ReadStatement("guard-grant+jwt", raw, &got); err != nil || got.Subject != "u1" || again != raw {
		t.Fatalf("%v: %+v", err, got)
	}
	storetest.Wants(t, i.ReadStatement("guard-assertion+jwt", raw, &got), fault.Unauthenticated, "another type")
	storetest.Wants(t, storetest.Err(i.Verify(token.XAuth, raw)), fault.Unauthenticated, "as a session")
	other := token.NewIssuer(keyringtest.Ring(t, time.Now), "castellan", "default", time.Now, 0)
	storetest.Wants(t, other.ReadStatement("guard-grant+jwt", raw, &got), fault.Unauthenticated, "another key")
	for at := range raw {
		for _, c := range "Ab." {
			changed := raw[:at] + string(c) + raw[at+1:]
			if err := i.ReadStatement("guard-grant+jwt", changed, &got); err == nil && changed != raw {
				t.Fatalf("byte %d as %q is accepted", at, c)
			}
		}
	}
	storetest.Fails(t, i.ReadStatement("guard-grant+jwt", strings.Repeat("a", 9000), &got), "", "too long")
}

// FuzzVerify: of all texts only the signed one is a token, and only of its class (SEC-19, SEC-20).
func FuzzVerify(f *testing.F) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	ring := keyringtest.Ring(f, clock)
	warm := token.NewIssuer(ring, issuerURL, "default", clock, 100)
	cold := token.NewIssuer(ring, issuerURL, "default", clock, 0)
	good, err := warm.Sign(session(now))
	storetest.Must(f, err)
	f.Add(good)
	f.Add(good + "=")
	f.Add("e30.e30.AA")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Fuzz(func(t *testing.T, raw string) {
		for _, i := range []*token.Issuer{warm, cold} {
			for _, class := range classes {
				_, err := i.Verify(class, raw)
				if (err == nil) != (raw == good && class == token.XAuth) {
					t.Fatalf("%s %q: %v", class, raw, err)
				}
				if code := fault.CodeOf(err); err != nil && code != fault.Unauthenticated {
					t.Fatalf("%s %q: %v", class, raw, err)
				}
			}
		}
	})
}
