package token_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
)

func session(now time.Time) token.Claims {
	return token.Claims{Class: token.XAuth, ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Subject: "01BX5ZZKBKACTAV9WEVGEMMVRZ",
		SessionID: "01BX5ZZKBKACTAV9WEVGEMMVS0", SV: 3,
		Roles: []string{"user"}, AMR: []string{"pwd", "sms", "mfa"}, AuthTime: now, IssuedAt: now,
		ExpiresAt: now.Add(30 * time.Minute)}
}

func benchIssuer(b *testing.B, capacity int) (*token.Issuer, string) {
	i := token.NewIssuer(keyringtest.Ring(b, nil), "https://accounts.example.com", "default", time.Now, capacity)
	raw := storetest.Value(i.Sign(session(time.Now())))(b)
	b.ReportAllocs()
	return i, raw
}

func BenchmarkSign(b *testing.B) {
	i, _ := benchIssuer(b, 1<<14)
	c := session(time.Now())
	n := 0
	for b.Loop() {
		n++
		c.ID = strconv.Itoa(n) // every token enters the cache, as in production
		storetest.Value(i.Sign(c))(b)
	}
}

func BenchmarkVerifyHit(b *testing.B) {
	i, raw := benchIssuer(b, 1<<10)
	for b.Loop() {
		storetest.Value(i.Verify(token.XAuth, raw))(b)
	}
}

func BenchmarkVerifyMiss(b *testing.B) {
	i, raw := benchIssuer(b, 0)
	for b.Loop() {
		storetest.Value(i.Verify(token.XAuth, raw))(b)
	}
}

// BenchmarkVerifyLibrary verifies the same token with the library that the tests use. It is the reference for
// docs/decisions/0007-tokens-without-a-library.md.
func BenchmarkVerifyLibrary(b *testing.B) {
	ring := keyringtest.Ring(b, nil)
	raw, err := token.NewIssuer(ring, "https://accounts.example.com", "default", time.Now, 0).Sign(session(time.Now()))
	storetest.Must(b, err)
	b.ReportAllocs()
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithAudience(string(token.XAuth)),
		jwt.WithExpirationRequired(), jwt.WithStrictDecoding())
	key := func(t *jwt.Token) (any, error) {
		public, _ := ring.Verifier(t.Header["kid"].(string))
		return public, nil
	}
	for b.Loop() {
		storetest.Must(b, storetest.Err(parser.ParseWithClaims(raw, &jwt.MapClaims{}, key)))
	}
}
