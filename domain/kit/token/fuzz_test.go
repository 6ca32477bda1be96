package token_test

import (
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/token"
)

// FuzzVerify: of all texts only the signed one is a token, and only of its class (SEC-19, SEC-20).
func FuzzVerify(f *testing.F) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	ring := keyringtest.Ring(f, clock)
	warm := token.NewIssuer(ring, issuerURL, "default", clock, 100)
	cold := token.NewIssuer(ring, issuerURL, "default", clock, 0)
	good, err := warm.Sign(session(now))
	if err != nil {
		f.Fatal(err)
	}
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
