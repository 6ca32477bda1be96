package device

import (
	"crypto/ed25519"
	"encoding/json"
	"net/url"
	"testing"
)

// FuzzKey: an accepted key has one form, which parses to the same key.
func FuzzKey(f *testing.F) {
	k, _ := PublicKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	f.Add(k.JWK())
	f.Add(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`)
	f.Add(`{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`)
	f.Fuzz(func(t *testing.T, jwk string) {
		k, err := ParseKey([]byte(jwk))
		if err != nil {
			return
		}
		again, err := ParseKey([]byte(k.JWK()))
		if err != nil || again.JWK() != k.JWK() || again.Thumbprint() != k.Thumbprint() || k.Alg() == "" {
			t.Fatalf("%q: %q and %q, %v", jwk, k.JWK(), again.JWK(), err)
		}
	})
}

// FuzzTarget: an accepted push target names an https address without a user, and its stored form parses to itself.
func FuzzTarget(f *testing.F) {
	f.Add(`{"type":"webhook","url":"https://example.com/a"}`)
	f.Add(`{"type":"webpush","endpoint":"https://example.com/a","keys":{"p256dh":"AA","auth":"AAAAAAAAAAAAAAAAAAAAAA"}}`)
	f.Add(`{"type":"webhook","url":"http://127.0.0.1/a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		kept, err := ParseTarget([]byte(text), false)
		if err != nil {
			return
		}
		if again, err := ParseTarget([]byte(kept), false); err != nil || again != kept {
			t.Fatalf("%q is kept as %q and read as %q, %v", text, kept, again, err)
		}
		var in struct{ URL, Endpoint string }
		decodeJSON(t, kept, &in)
		u, err := url.Parse(in.URL + in.Endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			t.Fatalf("%q is kept with the address %v, %v", text, u, err)
		}
	})
}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
