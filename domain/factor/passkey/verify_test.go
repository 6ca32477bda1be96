package passkey_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/storetest"
)

const (
	site  = "https://id.example.com"
	first = "Zmlyc3QtY2hhbGxlbmdl"
)

func party(t testing.TB) passkey.Party {
	p, ok := passkey.NewParty(site+"/base", "Castellan", []string{"https://app.example.org"})
	if !ok {
		t.Fatal("no party")
	}
	return p
}

func issued(challenge string) bool { return challenge == first }

// registered returns an authenticator and its credential.
func registered(t testing.TB, p passkey.Party, change func(*passkeytest.Authenticator)) (*passkeytest.Authenticator,
	passkey.Credential) {
	t.Helper()
	a := passkeytest.New(t, "id.example.com", site)
	if change != nil {
		change(a)
	}
	options := p.Creation(first, passkey.User{Handle: passkeytest.Encode(make([]byte, 32)), Name: "a", Shown: "A"}, nil)
	c, err := p.Register(a.Create(t, options), issued)
	if err != nil {
		t.Fatal(err)
	}
	return a, c
}

// A registration yields the credential, and its assertions verify: both algorithms, both origins.
func TestCeremonies(t *testing.T) {
	p := party(t)
	for name, change := range map[string]func(*passkeytest.Authenticator){
		"ES256": nil, "RS256": func(a *passkeytest.Authenticator) { a.UseRSA(t) },
		"related origin": func(a *passkeytest.Authenticator) { a.Origin = "https://app.example.org" },
		"on one device": func(a *passkeytest.Authenticator) {
			a.Flags, a.Count = passkeytest.Present|passkeytest.Verified, 7
		},
		"with extensions": func(a *passkeytest.Authenticator) {
			a.Flags |= passkeytest.Extensions
			a.Data = func(b []byte) []byte { return append(b, 0xa1, 0x61, 'x', 0xf5) }
		},
		"later members": func(a *passkeytest.Authenticator) {
			a.Client = func(m map[string]any) { m["other_keys_can_be_added_here"] = "do not compare" }
			a.Object = func(m map[string]any) { m["epAtt"] = false }
			a.Flags |= 1 << 5
		},
		"attested by itself": func(a *passkeytest.Authenticator) {
			a.Object = func(o map[string]any) { a.SelfAttest(t, a.ClientData(t, "webauthn.create", first))(o) }
		},
	} {
		a, c := registered(t, p, change)
		if !bytes.Equal(c.ID, a.ID) || c.AAGUID != a.AAGUID || c.Count != a.Count ||
			c.Eligible != (a.Flags&passkeytest.Eligible != 0) || c.BackedUp != (a.Flags&passkeytest.BackedUp != 0) ||
			!slices.Equal(c.Transports, []string{"hybrid", "internal"}) {
			t.Errorf("%s: %+v", name, c)
		}
		again, err := passkey.ParseKey([]byte(c.Key.JWK()))
		if err != nil || again.JWK() != c.Key.JWK() {
			t.Errorf("%s: %v: %s", name, err, c.Key.JWK())
		}
		c.Key = again
		raw := a.Get(t, p.Request("c2Vjb25k", []passkey.Credential{c}))
		got, err := p.Parse(raw)
		if err == nil {
			err = got.By(c)
		}
		if err != nil || got.Challenge != "c2Vjb25k" || got.Handle != a.Handle || got.Falls(c.Count) {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
		if got, ok := passkey.Evident(passkey.Keep(raw), c.Key); !ok || got.Challenge != "c2Vjb25k" {
			t.Errorf("%s: the kept form gives %q, %v", name, got, ok)
		}
		_, other := registered(t, p, change)
		if _, ok := passkey.Evident(passkey.Keep(raw), other.Key); ok {
			t.Errorf("%s: another key verifies the kept form", name)
		}
		other.ID = c.ID
		storetest.Is(t, got.By(other), passkey.ErrSignature, "another key", name)
	}
}

// spoil is one wrong ceremony, and the reason of its refusal.
type spoil struct {
	name   string
	change func(*passkeytest.Authenticator)
	why    error
}

func client(key string, value any) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) {
		a.Client = func(m map[string]any) {
			if value == nil {
				delete(m, key)
			} else {
				m[key] = value
			}
		}
	}
}

func response(key string, value any) func(*passkeytest.Authenticator) {
	return wired(func(m map[string]any) { m["response"].(map[string]any)[key] = value })
}

func wired(change func(map[string]any)) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.Wire = change }
}

func flags(clear, set byte) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.Flags = a.Flags&^clear | set }
}

func data(change func([]byte) []byte) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.Data = change }
}

func rewrite(old, new string) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) {
		a.Rewrite = func(s string) string { return strings.Replace(s, old, new, 1) }
	}
}

// both holds the faults that are refused in a registration and in an assertion alike.
var both = []spoil{
	{"another origin", func(a *passkeytest.Authenticator) { a.Origin = site + ".evil.net" }, passkey.ErrOrigin},
	{"an origin with a port", func(a *passkeytest.Authenticator) { a.Origin = site + ":8443" }, passkey.ErrOrigin},
	{"an origin without TLS", func(a *passkeytest.Authenticator) { a.Origin = "http://id.example.com" },
		passkey.ErrOrigin},
	{"a subdomain", func(a *passkeytest.Authenticator) { a.Origin = "https://x.id.example.com" }, passkey.ErrOrigin},
	{"an origin in capitals", client("origin", "https://ID.example.com"), passkey.ErrOrigin},
	{"no origin", client("origin", nil), passkey.ErrOrigin},
	{"origins", client("origin", []string{site}), passkey.ErrOrigin},
	{"another party", func(a *passkeytest.Authenticator) { a.Party = "example.com" }, passkey.ErrParty},
	{"no user verification", flags(passkeytest.Verified, 0), passkey.ErrVerified},
	{"no user presence", flags(passkeytest.Present, 0), passkey.ErrPresence},
	{"backed up but not eligible", flags(passkeytest.Eligible, passkeytest.BackedUp), passkey.ErrBackup},
	{"framed", client("crossOrigin", true), passkey.ErrFramed},
	{"framed in words", client("crossOrigin", "false"), passkey.ErrFramed},
	{"a top origin", client("topOrigin", "https://evil.net"), passkey.ErrFramed},
	{"another ceremony", client("type", "payment.get"), passkey.ErrType},
	{"no challenge", client("challenge", nil), passkey.ErrForm},
	{"a number as challenge", client("challenge", 1), passkey.ErrForm},
	{"two challenges", rewrite(`"challenge":`, `"challenge":"Zmlyc3QtY2hhbGxlbmdl","challenge":`), passkey.ErrForm},
	{"two origins", rewrite(`"origin":`, `"origin":"https://id.example.com","origin":`), passkey.ErrForm},
	{"a name in capitals", rewrite(`"origin":`, `"Origin":`), passkey.ErrOrigin},
	{"a byte after the client data", func(a *passkeytest.Authenticator) {
		a.Rewrite = func(s string) string { return s + "x" }
	}, passkey.ErrForm},
	{"no UTF-8", func(a *passkeytest.Authenticator) {
		a.Rewrite = func(s string) string { return strings.Replace(s, "{", "{\"x\":\"\xff\",", 1) }
	}, passkey.ErrForm},
	{"a byte after the data", data(func(b []byte) []byte { return append(b, 0) }), passkey.ErrForm},
	{"extensions without their flag", data(func(b []byte) []byte { return append(b, 0xa0) }), passkey.ErrForm},
	{"a flag without extensions", flags(0, passkeytest.Extensions), passkey.ErrForm},
	{"short data", data(func(b []byte) []byte { return b[:36] }), passkey.ErrForm},
	{"no data", data(func([]byte) []byte { return nil }), passkey.ErrForm},
	{"another type of credential", wired(func(m map[string]any) { m["type"] = "password" }), passkey.ErrForm},
	{"two ids", wired(func(m map[string]any) { m["rawId"] = passkeytest.Encode(make([]byte, 32)) }), passkey.ErrForm},
	{"padding", wired(func(m map[string]any) { m["id"], m["rawId"] = "AAAA==", "AAAA==" }), passkey.ErrForm},
	{"no id", wired(func(m map[string]any) { delete(m, "id"); delete(m, "rawId") }), passkey.ErrForm},
	{"a short id", func(a *passkeytest.Authenticator) { a.ID = a.ID[:15] }, passkey.ErrForm},
	{"a long id", func(a *passkeytest.Authenticator) { a.ID = make([]byte, 1024) }, passkey.ErrForm},
	{"an empty id", func(a *passkeytest.Authenticator) { a.ID = nil }, passkey.ErrForm},
	{"no response", wired(func(m map[string]any) { delete(m, "response") }), passkey.ErrForm},
	{"a list of extensions", wired(func(m map[string]any) { m["clientExtensionResults"] = []int{} }), passkey.ErrForm},
	{"no client data", response("clientDataJSON", ""), passkey.ErrForm},
	{"other client data", response("clientDataJSON", "e30"), passkey.ErrType},
	{"oversized", response("x", strings.Repeat("x", passkey.MaxAttestation)), passkey.ErrForm},
}

func cose(key int, value any) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.Cose = func(m map[int]any) { m[key] = value } }
}

func object(change func(map[string]any)) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.Object = change }
}

func TestRefusedRegistrations(t *testing.T) {
	p := party(t)
	options := p.Creation(first, passkey.User{Handle: "AA"}, nil)
	for _, c := range append(slices.Clone(both), []spoil{
		{"another challenge", client("challenge", "AAAA"), passkey.ErrChallenge},
		{"an assertion", client("type", "webauthn.get"), passkey.ErrType},
		{"not discoverable", wired(func(m map[string]any) {
			m["clientExtensionResults"] = map[string]any{"credProps": map[string]any{"rk": false}}
		}), passkey.ErrResident},
		{"another algorithm", cose(3, -257), passkey.ErrKey},
		{"no algorithm", cose(3, nil), passkey.ErrKey},
		{"the deprecated SHA-1", func(a *passkeytest.Authenticator) { a.UseRSA(t); cose(3, -65535)(a) }, passkey.ErrKey},
		{"an RSA key with a third member", func(a *passkeytest.Authenticator) {
			a.UseRSA(t)
			cose(-3, []byte{1})(a)
		}, passkey.ErrKey},
		{"another curve", cose(-1, 2), passkey.ErrKey},
		{"a point off the curve", cose(-2, make([]byte, 32)), passkey.ErrKey},
		{"a short coordinate", cose(-2, make([]byte, 31)), passkey.ErrKey},
		{"the id of another credential", wired(func(m map[string]any) {
			m["id"] = passkeytest.Encode(make([]byte, 32))
			m["rawId"] = m["id"]
		}), passkey.ErrForm},
		{"an unknown format", object(func(m map[string]any) { m["fmt"] = "fido-u2f" }), passkey.ErrFormat},
		{"a format in capitals", object(func(m map[string]any) { m["fmt"] = "None" }), passkey.ErrFormat},
		{"none with a statement", object(func(m map[string]any) {
			m["attStmt"] = map[string]any{"sig": []byte{1}}
		}), passkey.ErrForm},
		{"no statement", object(func(m map[string]any) { delete(m, "attStmt") }), passkey.ErrForm},
		{"packed with certificates", object(func(m map[string]any) {
			m["fmt"] = "packed"
			m["attStmt"] = map[string]any{"alg": -7, "sig": []byte{1}, "x5c": [][]byte{{1}}}
		}), passkey.ErrFormat},
		{"packed by another algorithm", object(func(m map[string]any) {
			m["fmt"], m["attStmt"] = "packed", map[string]any{"alg": -257, "sig": []byte{1}}
		}), passkey.ErrKey},
		{"packed with a wrong signature", object(func(m map[string]any) {
			m["fmt"], m["attStmt"] = "packed", map[string]any{"alg": -7, "sig": []byte{1}}
		}), passkey.ErrSignature},
		{"data as text", object(func(m map[string]any) { m["authData"] = "x" }), passkey.ErrForm},
		{"no attestation object", response("attestationObject", ""), passkey.ErrForm},
		{"a repeated member", response("attestationObject", "o2NmbXRkbm9uZWNmbXRkbm9uZWdhdHRTdG10oA"), passkey.ErrForm},
		{"an indefinite map", response("attestationObject", "v_8"), passkey.ErrForm},
		{"a tag", response("attestationObject", "wKA"), passkey.ErrForm},
		{"deep nesting", response("attestationObject", strings.Repeat("gYGB", 1000)), passkey.ErrForm},
		{"a length beyond the end", response("attestationObject", "u_________8"), passkey.ErrForm},
		{"no attested credential", data(func(b []byte) []byte {
			b[32] &^= passkeytest.Attested
			return b
		}), passkey.ErrForm},
		{"a key that is cut off", data(func(b []byte) []byte { return b[:len(b)-1] }), passkey.ErrKey},
		{"an id beyond the end", data(func(b []byte) []byte { b[53] = 0xff; return b }), passkey.ErrForm},
	}...) {
		a := passkeytest.New(t, "id.example.com", site)
		c.change(a)
		if _, err := p.Register(a.Create(t, options), issued); !errors.Is(err, c.why) {
			t.Errorf("%s: %v, want %v", c.name, err, c.why)
		}
	}
}

func TestRefusedAssertions(t *testing.T) {
	p := party(t)
	for _, c := range append(slices.Clone(both), []spoil{
		{"a registration", client("type", "webauthn.create"), passkey.ErrType},
		{"no signature", response("signature", ""), passkey.ErrForm},
		{"a signature with padding", response("signature", "AAAA=="), passkey.ErrForm},
		{"no data", response("authenticatorData", ""), passkey.ErrForm},
		{"a handle that is no base64url", response("userHandle", "a b"), passkey.ErrForm},
		{"a number as handle", response("userHandle", 5), passkey.ErrForm},
		{"a long handle", response("userHandle", passkeytest.Encode(make([]byte, 65))), passkey.ErrForm},
		{"an attested credential", flags(0, passkeytest.Attested), passkey.ErrForm},
		{"a wrong signature", response("signature", "MAYCAQECAQE"), passkey.ErrSignature},
		{"another key", func(a *passkeytest.Authenticator) { a.Key = passkeytest.New(t, "", "").Key }, passkey.ErrSignature},
		{"another id", func(a *passkeytest.Authenticator) { a.ID = make([]byte, 32) }, passkey.ErrSignature},
	}...) {
		a, cred := registered(t, p, nil)
		c.change(a)
		got, err := p.Parse(a.Get(t, p.Request(first, nil)))
		if err == nil {
			err = got.By(cred)
		}
		if !errors.Is(err, c.why) {
			t.Errorf("%s: %v, want %v", c.name, err, c.why)
		}
	}
	var zero passkey.Credential
	a, _ := registered(t, p, nil)
	got, err := p.Parse(a.Get(t, p.Request(first, nil)))
	if zero.ID = a.ID; err != nil || !errors.Is(got.By(zero), passkey.ErrSignature) {
		t.Error("the zero key verifies", err)
	}
}

// The counter must rise, unless the authenticator has none.
func TestCounter(t *testing.T) {
	for _, c := range []struct {
		stored, got uint32
		falls       bool
	}{{0, 0, false}, {0, 1, false}, {1, 2, false}, {1, 1, true}, {2, 1, true}, {1, 0, true}, {1<<32 - 1, 0, true}} {
		if (passkey.Assertion{Count: c.got}).Falls(c.stored) != c.falls {
			t.Errorf("%d after %d: want %v", c.got, c.stored, c.falls)
		}
	}
}

// Each spelling of a public URL has the origin that a browser sends.
func TestOrigins(t *testing.T) {
	for url, want := range map[string]string{"https://ID.Example.com/x": site, site + ":443": site,
		"http://localhost:80/": "http://localhost", "http://localhost:8080": "http://localhost:8080", "ftp://x": "",
		"https://a@b": "", "": "", "https://": ""} {
		if got, ok := passkey.OriginOf(url); got != want && (ok || want != "") {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
	p, ok := passkey.NewParty("http://localhost:8080/base", "x", []string{site, site})
	if !ok || p.ID != "localhost" || !slices.Equal(p.Origins, []string{"http://localhost:8080", site}) {
		t.Errorf("%+v", p)
	}
	for url, want := range map[string]string{"http://127.0.0.1:8080": "http://localhost:8080",
		"http://[::1]": "http://localhost", "http://[::]": "http://localhost", "http://0.0.0.0:81": "http://localhost:81"} {
		if p, ok := passkey.NewParty(url, "x", nil); !ok || p.ID != "localhost" || !slices.Contains(p.Origins, want) {
			t.Errorf("%s: %+v", url, p)
		}
	}
}

// The options have the members that Web Authentication Level 3 names.
func TestOptions(t *testing.T) {
	p := party(t)
	_, c := registered(t, p, nil)
	id := passkeytest.Encode(c.ID)
	want := `{"rp":{"id":"id.example.com","name":"Castellan"},"user":{"id":"aA","name":"a@b.c","displayName":"A B"},` +
		`"challenge":"Zmlyc3QtY2hhbGxlbmdl","pubKeyCredParams":[{"type":"public-key","alg":-7},` +
		`{"type":"public-key","alg":-257}],"timeout":300000,"excludeCredentials":[{"type":"public-key","id":"` + id +
		`","transports":["hybrid","internal"]}],"authenticatorSelection":{"residentKey":"required",` +
		`"requireResidentKey":true,"userVerification":"required"},"attestation":"none","extensions":{"credProps":true}}`
	if got := p.Creation(first, passkey.User{Handle: "aA", Name: "a@b.c", Shown: "A B"},
		[]passkey.Credential{c}); string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	want = `{"challenge":"Zmlyc3QtY2hhbGxlbmdl","timeout":300000,"rpId":"id.example.com","allowCredentials":[],` +
		`"userVerification":"required"}`
	if got := p.Request(first, nil); string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The CBOR of an answer has at most 64 members, 64 elements and four levels.
func TestSizeOfCBORIsBounded(t *testing.T) {
	pairs := func(n int) func(map[string]any) {
		return func(o map[string]any) {
			for i := len(o); i < n; i++ {
				o[strings.Repeat("x", i)] = 1
			}
		}
	}
	elements := func(n int) func(map[string]any) { return func(o map[string]any) { o["x"] = make([]int, n) } }
	levels := func(n int) func(map[string]any) {
		return func(o map[string]any) {
			var inner any = 1
			for range n - 1 { // the object is the first level
				inner = []any{inner}
			}
			o["x"] = inner
		}
	}
	p := party(t)
	for name, c := range map[string]struct {
		object func(map[string]any)
		good   bool
	}{
		"64 members": {pairs(64), true}, "65 members": {pairs(65), false},
		"64 elements": {elements(64), true}, "65 elements": {elements(65), false},
		"4 levels": {levels(4), true}, "5 levels": {levels(5), false},
	} {
		a := passkeytest.New(t, "id.example.com", site)
		a.Object = c.object
		options := p.Creation(first, passkey.User{Handle: passkeytest.Encode(make([]byte, 32)), Name: "a", Shown: "A"}, nil)
		if _, err := p.Register(a.Create(t, options), issued); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
