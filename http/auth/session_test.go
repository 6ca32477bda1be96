package auth_test

import (
	"context"
	"crypto/ed25519"
	"net/http/httptest"
	"testing"
	"time"

	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

// spent is the rows of used proofs.
type spent struct {
	commit.Committer
	ids map[string]bool
}

func (s spent) Commit(_ context.Context, ws ...commit.Write) error {
	for _, w := range ws {
		if see, is := w.(device.See); is {
			if s.ids[see.ID] {
				return commit.ErrFenced
			}
			s.ids[see.ID] = true
		}
	}
	return nil
}

// keyed is an issuer whose tokens name a key, except the token "x-auth:plain".
type keyed struct{ thumbprint string }

func (k keyed) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := issuer{}.Verify(class, raw)
	if raw != "x-auth:plain" {
		c.Thumbprint = k.thumbprint
	}
	return c, err
}

// With sessions.bind: requests, a token of a session with a key needs a proof for each request, which is used up once
// even where the session is checked twice. A token without its request is refused; one without a key needs nothing.
func TestProofsOfRequests(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	storetest.Must(t, err)
	_, other, err := ed25519.GenerateKey(nil)
	storetest.Must(t, err)
	public, _ := device.PublicKey(key)
	used := spent{ids: map[string]bool{}}
	late := false
	now := func() time.Time {
		if late { // the request takes a minute
			return time.Now().Add(time.Minute)
		}
		return time.Now()
	}
	g := auth.Guards{Tokens: keyed{public.Thumbprint()}, Feed: &changetest.Feed{}, Tenant: "t1",
		Live: func(string, string, int64) bool { return true },
		Proofs: &dpop.Verifier{Ring: keyringtest.Keeper(t, time.Now).Ring(), Commit: used, PublicURL: "https://id.example",
			Now: time.Now}}
	var who rest.Caller
	s, err := edge.New(edge.Options{Guards: g.Table(), Now: now,
		Authorize: func(context.Context, rest.Caller, *rest.Endpoint) error { return nil }}, []rest.Endpoint{
		rest.Get("/x", "", rest.User, func(_ context.Context, c rest.Caller, _ rest.None) (rest.None, error) {
			who, late = c, true
			return rest.None{}, nil
		})})
	storetest.Must(t, err)
	ask := func(xAuth, proof string) int {
		t.Helper()
		late = false
		r := httptest.NewRequest("GET", "/x?y=1", nil)
		r.Host = "id.example"
		r.Header.Set("x-auth", xAuth)
		if proof != "" {
			r.Header.Set("dpop", proof)
		}
		a, err := s.App.Test(r)
		storetest.Must(t, err)
		return a.StatusCode
	}
	sign := func(k ed25519.PrivateKey, xAuth, target string) string {
		raw, err := dpop.Sign(k, dpop.Claims{Method: "GET", Target: target, TokenHash: dpop.TokenHash(xAuth)})
		storetest.Must(t, err)
		return raw
	}
	const mine, here = "x-auth:u1", "https://id.example/x"
	good := sign(key, mine, here)
	for i, try := range []struct {
		xAuth, proof string
		want         int
	}{
		{mine, good, 200}, {mine, good, 401}, {mine, "", 401}, {mine, sign(other, mine, here), 401},
		{mine, sign(key, "x-auth:u2", here), 401}, {mine, sign(key, mine, here+"z"), 401}, {mine, sign(key, mine, here), 200},
		{"x-auth:plain", "", 200}, {"x-auth:plain", "nonsense", 200},
	} {
		if got := ask(try.xAuth, try.proof); got != try.want {
			t.Errorf("request %d: %d, want %d", i, got, try.want)
		}
		if try.want == 200 && (who.KeyThumbprint != "") != (try.xAuth == mine) {
			t.Errorf("request %d: key %q", i, who.KeyThumbprint)
		}
	}
	if ask(mine, sign(key, mine, here)); who.KeyToken != mine || !who.KeyProved {
		t.Errorf("a used proof: token %q, proved %t", who.KeyToken, who.KeyProved)
	}
	if ask("x-auth:plain", "a proof"); who.KeyToken != "x-auth:plain" || who.KeyProved {
		t.Errorf("a proof that is not needed: token %q, proved %t", who.KeyToken, who.KeyProved)
	}
	if ask("x-auth:plain", ""); who.KeyToken != "" || who.KeyProved {
		t.Errorf("no proof: token %q, proved %t", who.KeyToken, who.KeyProved)
	}
	_, err = g.Session(t.Context(), mine)
	storetest.Wants(t, err, fault.DPoPInvalid)
	_, err = g.Session(t.Context(), "x-auth:plain")
	storetest.Must(t, err)
	g.Proofs = nil
	_, err = g.Session(t.Context(), mine)
	storetest.Must(t, err)
}
