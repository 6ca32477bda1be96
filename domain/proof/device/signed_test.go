package device_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/proof/device"
	"castellan/persistence/persistencetest"
)

// A proof is read only as a compact JWS of its type, of at most 4096 bytes, without critical extensions.
// TestParseIsStrict has the rest.
func TestReadSigned(t *testing.T) {
	b64 := base64.RawURLEncoding.EncodeToString
	head, claims, sig := b64([]byte(`{"alg":"ES256","typ":"T"}`)), b64([]byte(`{"jti":"1"}`)), b64([]byte("sig"))
	long := func(n int) string { // a proof of n bytes
		for pad := n; ; pad-- {
			filled := b64([]byte(fmt.Sprintf(`{"jti":"%s"}`, strings.Repeat("x", pad))))
			if raw := head + "." + filled + "." + sig; len(raw) <= n {
				return raw + strings.Repeat("A", n-len(raw)) // of the signature
			}
		}
	}
	for name, c := range map[string]struct {
		raw string
		ok  bool
	}{
		"plain":              {head + "." + claims + "." + sig, true},
		"another case":       {b64([]byte(`{"alg":"ES256","typ":"t"}`)) + "." + claims + "." + sig, true},
		"no claims":          {head + ".." + sig, false},
		"no header":          {"." + claims + "." + sig, false},
		"critical extension": {b64([]byte(`{"alg":"ES256","typ":"T","crit":[]}`)) + "." + claims + "." + sig, false},
		"the longest":        {long(4096), true},
		"too long":           {long(4097), false},
	} {
		s, ok := device.ReadSigned(c.raw, "T")
		if ok != c.ok || ok && (len(s.Head) != 2 || len(s.Claims) != 1) || !ok && (s.Head != nil || s.Claims != nil) {
			t.Errorf("%s: %+v, %t", name, s, ok)
		}
	}
	for text, want := range map[string]bool{`{"jti":"1","iat":5}`: true, `{"jti":"","iat":5}`: false, `{"iat":5}`: false,
		`{"jti":1,"iat":5}`: false, `{"jti":"1"}`: false, `{"jti":"1","iat":null}`: false, `{"jti":"1","iat":"5"}`: false,
		`{"jti":"1","iat":1e11}`: true, `{"jti":"1","iat":-1e11}`: true, `{"jti":"1","iat":100000000001}`: false,
		`{"jti":"1","iat":-100000000001}`: false, `{"jti":"1","iat":5,"nonce":7}`: false,
		`{"jti":"1","iat":5,"nonce":"n"}`: true, fmt.Sprintf(`{"jti":%q,"iat":5}`, strings.Repeat("x", 256)): true,
		fmt.Sprintf(`{"jti":%q,"iat":5}`, strings.Repeat("x", 257)): false} {
		s, ok := device.ReadSigned(head+"."+b64([]byte(text))+"."+sig, "T")
		if _, got := s.Once(); !ok || got != want {
			t.Errorf("%s: %t, %t", text, ok, got)
		}
	}
}

// After a hashing key was replaced, used proofs are still refused, and nonces issued before are still valid.
func TestProofsOutliveAReplacedKey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	keys := keyringtest.Keeper(t, d.Now)
	d.Ring = keys.Ring()
	p := d.enroll(1, device.ES256)
	c := claimsOf(ongoing)
	present := func(edit func(*device.Claims)) error {
		_, err := d.Present(t.Context(), of(ongoing, d.sign(p, c, edit)))
		return err
	}
	named := func(id string) func(*device.Claims) { return func(c *device.Claims) { c.ID = id } }
	old := func(c *device.Claims) { c.IssuedAt = 1 }
	expect(t, "before", present(named("one")), "", false)
	nonce := expect(t, "stale", present(old), fault.DeviceSignatureInvalid, true)
	keyringtest.Replace(t, keys)
	expect(t, "announced", present(named("two")), "", false)
	d.now.Add(keyring.Notice.Milliseconds())
	expect(t, "the first again", present(named("one")), fault.DeviceSignatureInvalid, false)
	expect(t, "the second again", present(named("two")), fault.DeviceSignatureInvalid, false)
	with := func(c *device.Claims) { c.Nonce, c.IssuedAt = nonce, 1 }
	expect(t, "the nonce", present(with), "", false)
	expect(t, "the nonce again", present(with), fault.DeviceSignatureInvalid, true)
	expect(t, "after", present(named("three")), "", false)
	expect(t, "after, again", present(named("three")), fault.DeviceSignatureInvalid, false)
}
