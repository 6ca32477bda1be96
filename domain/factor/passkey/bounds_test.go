package passkey_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/storetest"
)

// long returns a change that makes the id of an authenticator as long as this.
func long(n int) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) { a.ID = bytes.Repeat([]byte{7}, n) }
}

// props returns a change of the report whether a passkey is discoverable.
func props(value any) func(*passkeytest.Authenticator) {
	return wired(func(m map[string]any) { m["clientExtensionResults"] = map[string]any{"credProps": value} })
}

// modulus returns a change that makes the key one of RSA with these leading and trailing bytes.
func modulus(size int, head, tail byte, e ...byte) func(*passkeytest.Authenticator) {
	return func(a *passkeytest.Authenticator) {
		n := bytes.Repeat([]byte{5}, size)
		if size > 0 {
			n[0], n[size-1] = head, tail
		}
		a.Cose = func(m map[int]any) {
			clear(m)
			m[1], m[3], m[-1], m[-2] = 3, -257, n, e
		}
	}
}

// The limits of a registration, each on both sides: ids of 16 to 1023 bytes, RSA keys of 2048 to 4096 bits with the
// exponent 65537.
func TestLimitsOfRegistrations(t *testing.T) {
	p := party(t)
	options := p.Creation(first, passkey.User{Handle: "AA"}, nil)
	for _, c := range []spoil{
		{"16 bytes of id", long(16), nil},
		{"15 bytes of id", long(15), passkey.ErrForm},
		{"1023 bytes of id", long(1023), nil},
		{"1024 bytes of id", long(1024), passkey.ErrForm},
		{"2048 bits", modulus(256, 0x80, 1, 1, 0, 1), nil},
		{"2047 bits", modulus(256, 0x7f, 1, 1, 0, 1), passkey.ErrKey},
		{"4096 bits", modulus(512, 0xff, 1, 1, 0, 1), nil},
		{"4097 bits", modulus(513, 1, 1, 1, 0, 1), passkey.ErrKey},
		{"a leading zero", modulus(300, 0, 1, 1, 0, 1), passkey.ErrKey},
		{"an even modulus", modulus(256, 0x80, 2, 1, 0, 1), passkey.ErrKey},
		{"no modulus", modulus(0, 0, 0, 1, 0, 1), passkey.ErrKey},
		{"an exponent of four bytes", modulus(256, 0x80, 1, 0, 1, 0, 1), nil},
		{"an exponent of five bytes", modulus(256, 0x80, 1, 0, 0, 1, 0, 1), passkey.ErrKey},
		{"another exponent", modulus(256, 0x80, 1, 1, 0, 3), passkey.ErrKey},
		{"a modulus that is a number", func(a *passkeytest.Authenticator) { a.UseRSA(t); cose(-1, 5)(a) }, passkey.ErrKey},
		{"an unknown type of key", cose(1, 4), passkey.ErrKey},
		{"a long coordinate", cose(-3, make([]byte, 33)), passkey.ErrKey},
		{"data that ends before the length of the id", data(func(b []byte) []byte { return b[:37+17] }), passkey.ErrForm},
		{"data that ends before the id", data(func(b []byte) []byte { return b[:37+18] }), passkey.ErrForm},
		{"data that ends before the key", data(func(b []byte) []byte { return b[:37+18+32] }), passkey.ErrKey},
		{"neither id nor key", data(func(b []byte) []byte { return append(b[:37+16], 0, 0) }), passkey.ErrKey},
		{"extensions that are no map", func(a *passkeytest.Authenticator) {
			a.Flags |= passkeytest.Extensions
			a.Data = func(b []byte) []byte { return append(b, 0x01) }
		}, passkey.ErrForm},
		{"a report without rk", props(map[string]any{}), nil},
		{"discoverable", props(map[string]any{"rk": true}), nil},
		{"a report that is no object", props(1), passkey.ErrForm},
		{"packed without a statement", object(func(m map[string]any) {
			m["fmt"], m["attStmt"] = "packed", 5
		}), passkey.ErrForm},
		{"packed by ECDAA", object(func(m map[string]any) {
			m["fmt"], m["attStmt"] = "packed", map[string]any{"alg": -7, "sig": []byte{1}, "ecdaaKeyId": []byte{1}}
		}), passkey.ErrFormat},
		{"packed with a version", object(func(m map[string]any) {
			m["fmt"], m["attStmt"] = "packed", map[string]any{"alg": -7, "sig": []byte{1}, "ver": "2.0"}
		}), passkey.ErrFormat},
		{"an RSA key attested by itself", func(a *passkeytest.Authenticator) {
			a.UseRSA(t)
			a.Object = func(o map[string]any) { a.SelfAttest(t, a.ClientData(t, "webauthn.create", first))(o) }
		}, nil},
	} {
		a := passkeytest.New(t, "id.example.com", site)
		c.change(a)
		got, err := p.Register(a.Create(t, options), issued)
		if !errors.Is(err, c.why) || (err == nil) != bytes.Equal(got.ID, a.ID) {
			t.Errorf("%s: %v, want %v", c.name, err, c.why)
		}
	}
}

// An answer has at most 16 KiB at a registration and 8 KiB at an assertion.
func TestLimitsOfSizes(t *testing.T) {
	p := party(t)
	a, _ := registered(t, p, nil)
	create, get := a.Create(t, p.Creation(first, passkey.User{Handle: "AA"}, nil)), a.Get(t, p.Request(first, nil))
	padded := func(raw []byte, n int) []byte {
		return append(slices.Clone(raw), bytes.Repeat([]byte(" "), n-len(raw))...)
	}
	for more, want := range []error{nil, passkey.ErrForm} {
		if _, err := p.Register(padded(create, 16<<10+more), issued); !errors.Is(err, want) {
			t.Errorf("a registration with %d bytes more than allowed: %v", more, err)
		}
		if _, err := p.Parse(padded(get, 8<<10+more)); !errors.Is(err, want) {
			t.Errorf("an assertion with %d bytes more than allowed: %v", more, err)
		}
	}
}

// The handle of a user has 1 to 64 bytes, and may be missing. A signature has one spelling.
func TestLimitsOfAssertions(t *testing.T) {
	p := party(t)
	for _, c := range []spoil{
		{"a handle of 64 bytes", response("userHandle", passkeytest.Encode(make([]byte, 64))), nil},
		{"an empty handle", response("userHandle", ""), passkey.ErrForm},
		{"a null handle", response("userHandle", nil), nil},
		{"no handle", wired(func(m map[string]any) { delete(m["response"].(map[string]any), "userHandle") }), nil},
		{"a signature on two lines", response("signature", "MAYCAQEC\nAQE"), passkey.ErrForm},
		{"a signature on two lines of Windows", response("signature", "MAYCAQEC\r\nAQE"), passkey.ErrForm},
	} {
		a, _ := registered(t, p, nil)
		c.change(a)
		if _, err := p.Parse(a.Get(t, p.Request(first, nil))); !errors.Is(err, c.why) {
			t.Errorf("%s: %v, want %v", c.name, err, c.why)
		}
	}
}

// Only known transports are kept, in a fixed order.
func TestTransports(t *testing.T) {
	p := party(t)
	for _, c := range []struct {
		reported any
		want     []string
	}{
		{[]string{"usb", "smart-card", "nfc", "internal", "hybrid", "cable", "ble", "radio", "usb"},
			[]string{"ble", "cable", "hybrid", "internal", "nfc", "smart-card", "usb"}},
		{[]string{"radio"}, nil}, {nil, nil}, {"usb", nil}, {[]any{"usb", 5}, nil},
	} {
		_, got := registered(t, p, response("transports", c.reported))
		if !slices.Equal(got.Transports, c.want) {
			t.Errorf("%v: %q", c.reported, got.Transports)
		}
	}
}

// A key has one JSON form, which is its JWK. Every other text is refused.
func TestFormOfKeys(t *testing.T) {
	p := party(t)
	for name, change := range map[string]func(*passkeytest.Authenticator){"ES256": nil,
		"RS256": func(a *passkeytest.Authenticator) { a.UseRSA(t) }} {
		_, c := registered(t, p, change)
		text, err := json.Marshal(c.Key)
		var again passkey.Key
		if err != nil || string(text) != c.Key.JWK() || json.Unmarshal(text, &again) != nil ||
			again.JWK() != c.Key.JWK() {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		jwk := c.Key.JWK()
		for _, wrong := range []string{" " + jwk, strings.Replace(jwk, `"kty"`, `"x":"","kty"`, 1),
			strings.Replace(jwk, `"kty":"`, `"kty":"O`, 1), strings.Replace(jwk, `","`, `", "`, 1), jwk[:len(jwk)-1]} {
			if k, err := passkey.ParseKey([]byte(wrong)); !errors.Is(err, passkey.ErrKey) || k.JWK() != "" {
				t.Errorf("%s: %v", wrong, err)
			}
		}
	}
	var zero passkey.Key
	for _, wrong := range []string{"", "{}", "null", `{"kty":"oct"}`, `{"kty":"EC","x":5,"y":5}`, `{"kty":"RSA"}`} {
		storetest.Is(t, zero.UnmarshalJSON([]byte(wrong)), passkey.ErrKey, wrong)
	}
	storetest.Equal(t, zero.JWK(), "", "the zero key has the form")
}

// A kept assertion is evidence only in its whole form.
func TestEvidenceIsComplete(t *testing.T) {
	p := party(t)
	a, c := registered(t, p, nil)
	whole := passkey.Keep(a.Get(t, p.Request(first, nil)))
	if got, ok := passkey.Evident(whole, c.Key); !ok || got != (passkey.Evidence{Challenge: first, Origin: site}) {
		t.Fatalf("%q, %v", got, ok)
	}
	broken := []string{"", strings.TrimPrefix(whole, passkey.Text), whole + "=", passkey.Text,
		passkey.Keep([]byte("{}"))}
	flags := a.Flags
	for _, change := range []func(*passkeytest.Authenticator){response("signature", "!"),
		response("authenticatorData", "!"), client("type", "webauthn.create"),
		func(a *passkeytest.Authenticator) { a.Flags &^= passkeytest.Verified },
		func(a *passkeytest.Authenticator) { a.Flags &^= passkeytest.Present }} {
		change(a)
		broken = append(broken, passkey.Keep(a.Get(t, p.Request(first, nil))))
		a.Wire, a.Client, a.Flags = nil, nil, flags
	}
	for i, kept := range broken {
		if got, ok := passkey.Evident(kept, c.Key); ok || got != (passkey.Evidence{}) {
			t.Errorf("%d: %q, %v", i, got, ok)
		}
	}
}

// A party needs a public URL of the web with a host, and nothing else has an origin.
func TestPartyNeedsAHost(t *testing.T) {
	for _, url := range []string{"", "ftp://x", "https://", "https://a@b", "https://[::1", "id.example.com", ":"} {
		if p, ok := passkey.NewParty(url, "x", nil); ok || p.ID != "" {
			t.Errorf("%q: %+v", url, p)
		}
		if origin, ok := passkey.OriginOf(url); ok || origin != "" {
			t.Errorf("%q: %q", url, origin)
		}
	}
	for url, want := range map[string]string{"https://x:80": "https://x:80", "http://x:443": "http://x:443",
		"http://x:80": "http://x"} {
		if origin, ok := passkey.OriginOf(url); !ok || origin != want {
			t.Errorf("%q: %q", url, origin)
		}
	}
	p, ok := passkey.NewParty("https://192.0.2.1", "x", nil)
	if !ok || p.ID != "192.0.2.1" || !slices.Equal(p.Origins, []string{"https://192.0.2.1"}) {
		t.Errorf("an address that is not this machine: %+v", p)
	}
}

// spoilt is how many spoilt inputs TestSpoiltInputs sends; a million takes about a minute.
var spoilt = flag.Int("spoilt", 20_000, "spoilt inputs")

// FuzzRegistration: a registration that is accepted has a key that its own form gives again.
func FuzzRegistration(f *testing.F) {
	p := party(f)
	a := passkeytest.New(f, "id.example.com", site)
	f.Add(a.Create(f, p.Creation(first, passkey.User{Handle: "AA"}, nil)))
	f.Fuzz(func(t *testing.T, raw []byte) { register(t, p, raw) })
}

func register(t testing.TB, p passkey.Party, raw []byte) bool {
	c, err := p.Register(raw, issued)
	if err != nil {
		return false
	}
	again, err := passkey.ParseKey([]byte(c.Key.JWK()))
	if err != nil || again.JWK() != c.Key.JWK() || len(c.ID) < 16 {
		t.Fatalf("%s: %v, %+v", raw, err, c)
	}
	return true
}

// FuzzAssertion: an assertion that another text than the signed one makes is never of the credential.
func FuzzAssertion(f *testing.F) {
	p := party(f)
	a, c := registered(f, p, nil)
	raw := a.Get(f, p.Request(first, nil))
	good, err := p.Parse(raw)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) { assert(t, p, c, good.Challenge, raw) })
}

func assert(t testing.TB, p passkey.Party, c passkey.Credential, challenge string, raw []byte) bool {
	got, err := p.Parse(raw)
	if err != nil || got.By(c) != nil {
		return false
	}
	if got.Challenge != challenge || got.Falls(c.Count) {
		t.Fatalf("%s: %+v", raw, got)
	}
	return true
}

// Spoilt inputs neither panic nor verify: bytes of the JSON, of the client data, of the CBOR and of the authenticator
// data are changed, removed and doubled. The correct ones among them still verify.
func TestSpoiltInputs(t *testing.T) {
	p := party(t)
	a, c := registered(t, p, nil)
	create := a.Create(t, p.Creation(first, passkey.User{Handle: "AA"}, nil))
	get := a.Get(t, p.Request(first, nil))
	r := rand.New(rand.NewPCG(1, 2))
	right := 0
	for i := range *spoilt {
		raw, members := create, []string{"clientDataJSON", "attestationObject", "transports"}
		if i%2 == 1 {
			raw, members = get, []string{"clientDataJSON", "authenticatorData", "signature", "userHandle"}
		}
		if i%1000 > 1 {
			raw = spoilIn(t, r, raw, members)
		}
		ok := false
		if i%2 == 1 {
			ok = assert(t, p, c, first, raw)
		} else {
			ok = register(t, p, raw)
		}
		if ok {
			right++
		} else if i%1000 < 2 {
			t.Fatalf("the correct input is refused: %s", raw)
		}
	}
	if right < *spoilt/1000 {
		t.Errorf("%d of %d are accepted", right, *spoilt)
	}
}

func spoilIn(t *testing.T, r *rand.Rand, raw []byte, members []string) []byte {
	if r.IntN(4) == 0 {
		return spoilBytes(r, raw)
	}
	var all map[string]any
	storetest.Must(t, json.Unmarshal(raw, &all))
	in, _ := all["response"].(map[string]any)
	name := members[r.IntN(len(members))]
	value, _ := in[name].(string)
	b, _ := base64.RawURLEncoding.DecodeString(value)
	in[name] = passkeytest.Encode(spoilBytes(r, b))
	return storetest.Value(json.Marshal(all))(t)
}

func spoilBytes(r *rand.Rand, b []byte) []byte {
	b = append([]byte{}, b...)
	for range 1 + r.IntN(3) {
		if len(b) == 0 {
			return []byte{byte(r.Uint32())}
		}
		at := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = []byte{0, 0xff, 0x5f, 0x7f, 0x9f, 0xbf, 0xa0, 0xfb, 0x1b, 0x3b, 0xdb, '"', '{', '}'}[r.IntN(14)]
		case 2:
			b = append(b[:at], b[at+1:]...)
		case 3:
			b = append(b[:at:at], append([]byte{byte(r.Uint32())}, b[at:]...)...)
		case 4:
			b = b[:at]
		}
	}
	return b
}
