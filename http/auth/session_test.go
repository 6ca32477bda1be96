package auth_test

import (
	"context"
	"crypto/ed25519"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/http/apitest"
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
	s := apitest.Serve(t, edge.Options{Guards: g.Table(), Now: now, Authorize: anybody}, apitest.Endpoints{
		rest.Get("/x", "", rest.User, func(_ context.Context, c rest.Caller, _ rest.None) (rest.None, error) {
			who, late = c, true
			return rest.None{}, nil
		})})
	ask := func(xAuth, proof string) int {
		t.Helper()
		late = false
		r := httptest.NewRequest("GET", "/x?y=1", nil)
		r.Host = "id.example"
		r.Header.Set("x-auth", xAuth)
		if proof != "" {
			r.Header.Set("dpop", proof)
		}
		a := storetest.Value(s.Server.App.Test(r))(t)
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
		storetest.Equal(t, ask(try.xAuth, try.proof), try.want, "request", i)
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

// overdue is an issuer of tokens for "late": their time is over. Those for "key" are of a session with a key, and those
// for "ended" of one that has ended.
type overdue struct{}

func (overdue) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := issuer{}.Verify(class, raw)
	if err == nil && strings.Contains(c.Subject, "late") {
		return token.Claims{}, fault.New(fault.TokenExpired, "over")
	}
	return c, err
}

func (overdue) ended(class token.Class, raw string) (token.Claims, error) {
	c, err := issuer{}.Verify(class, raw)
	if strings.Contains(c.Subject, "key") {
		c.Thumbprint = "t"
	}
	if strings.Contains(c.Subject, "forged") {
		return token.Claims{}, fault.New(fault.Unauthenticated, "forged")
	}
	return c, err
}

// A token without a request is never accepted after its time.
func TestSessionIsNoRenewal(t *testing.T) {
	g := auth.Guards{Tokens: overdue{}, Ended: overdue{}.ended, Feed: &changetest.Feed{},
		Live: func(string, string, int64) bool { return true }}
	_, err := g.Session(t.Context(), "x-auth:late-key")
	storetest.Wants(t, err, fault.TokenExpired)
	c, err := g.Session(t.Context(), "x-auth:u1")
	if err != nil || c.Subject != "u1" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A token whose time is over is accepted for a renewal only, and only if its session has a key and has not ended.
func TestRenewalAcceptsOverdueTokens(t *testing.T) {
	g := auth.Guards{Tokens: overdue{}, Ended: overdue{}.ended, Feed: &changetest.Feed{}, Tenant: "t1",
		Live: func(userID, _ string, _ int64) bool { return !strings.Contains(userID, "ended") }}
	var who rest.Caller
	run := func(_ context.Context, c rest.Caller, _ rest.None) (rest.None, error) {
		who = c
		return rest.None{}, nil
	}
	s := apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: anybody}, apitest.Endpoints{
		rest.Get("/x", "", rest.User, run), rest.Get("/renew", "", rest.User, run).Renews()})
	for request, want := range map[string]string{
		"/x plain": "", "/x late-key": "TOKEN_EXPIRED", "/x late": "TOKEN_EXPIRED", "/x ended": "TOKEN_REVOKED",
		"/renew plain": "", "/renew late-key": "", "/renew late": "TOKEN_EXPIRED",
		"/renew late-key-ended": "TOKEN_REVOKED", "/renew ended": "TOKEN_REVOKED",
		"/renew late-key-forged": "UNAUTHENTICATED",
	} {
		path, name, _ := strings.Cut(request, " ")
		who = rest.Caller{}
		if _, answer := s.As("x-auth:"+name).Call("GET "+path, "", "dpop", "a proof"); refusal(answer) != want {
			t.Errorf("%s: %s, want %q", request, answer, want)
			continue
		}
		storetest.Equal(t, who.Renewing != nil, (want == "" && path == "/renew"), request, "renewing")
		if want == "" && (who.UserID != name || who.Renewing != nil && (who.Renewing.XAuth != "x-auth:"+name ||
			who.Renewing.Claims.Subject != name)) {
			t.Errorf("%s: %+v", request, who)
		}
		if want == "" && (who.KeyToken != "") != (path == "/x") {
			t.Errorf("%s: the token of the proof is %q", request, who.KeyToken)
		}
	}
}

// notes is a feed of one note.
type notes struct {
	at     time.Time
	broken bool
}

func (n *notes) Since(ctx context.Context, from time.Time) ([]change.Entry, error) {
	switch {
	case n.broken:
		return nil, context.DeadlineExceeded
	case n.at.IsZero() || n.at.Before(from):
		return nil, nil
	}
	return []change.Entry{{ID: 1, Note: change.Note{Topic: change.Sessions, Key: "x"}, At: n.at}}, nil
}
func (n *notes) Purge(context.Context, time.Time) error { return nil }

// stopped verifies tokens as a process does that is stopped somewhere.
type stopped struct{ before, after func() }

func (s stopped) Verify(token.Class, string) (token.Claims, error) {
	s.before()
	defer s.after()
	return token.Claims{Subject: "u", SessionID: "s", SV: 1, ExpiresAt: time.Now().Add(time.Hour)}, nil
}

// A session that ended elsewhere while this process was stopped is refused,
// wherever in a request it was stopped, also when the feed is read before the
// request goes on; a session that lives is served.
func TestStoppedProcess(t *testing.T) {
	const start, tokens, live, handler = "start", "tokens", "live", "handler"
	for _, at := range []string{start, tokens, live, handler} {
		for _, first := range []bool{false, true} { // the poller goes on before the request does
			for _, ended := range []bool{false, true} {
				for _, stop := range []time.Duration{1100 * time.Millisecond, 6 * time.Second, 15 * time.Second} {
					now := time.Now()
					feed := &notes{}
					known := false
					r := change.NewReader(feed, func() time.Time { return now })
					r.On(change.Sessions, func(context.Context, ...string) error { known = true; return nil })
					storetest.Must(t, r.Poll(t.Context()))
					halts := map[string]func(){}
					halt := func(place string) func() {
						return func() {
							if do := halts[place]; do != nil {
								delete(halts, place)
								do()
							}
						}
					}
					halts[at] = func() {
						if ended {
							feed.at = now.Add(10 * time.Millisecond)
						}
						now = now.Add(stop)
						if first {
							storetest.Must(t, r.Poll(t.Context()))
						}
					}
					g := auth.Guards{Tokens: stopped{halt(start), halt(tokens)}, Tenant: "default", Feed: r,
						Live: func(string, string, int64) bool {
							was := !known
							halt(live)()
							return was
						}}
					s := apitest.Serve(t, edge.Options{Now: func() time.Time { return now }, Guards: g.Table(), Authorize: anybody},
						apitest.Endpoints{
							rest.Get("/me", "", rest.User, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
								halt(handler)()
								return rest.None{}, nil
							})}).As("token")
					status, _ := s.Call("GET /me", "")
					want := 200
					if ended {
						want = 401
					}
					if status != want {
						t.Errorf("stopped for %v at %s, poller first %v, ended %v: %d", stop, at, first, ended, status)
					}
				}
			}
		}
	}
}

// A node that cannot catch up reports it and names no session.
func TestCannotCatchUp(t *testing.T) {
	now, feed := time.Now(), &notes{}
	r := change.NewReader(feed, func() time.Time { return now })
	storetest.Must(t, r.Poll(t.Context()))
	idle := func() {}
	g := auth.Guards{Tokens: stopped{idle, idle}, Tenant: "default", Feed: r,
		Live: func(string, string, int64) bool { return true }}
	s := apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: anybody},
		apitest.Endpoints{rest.Get("/me", "", rest.User, nothing[rest.None])}).As("token")
	feed.broken = true
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 200}, {999 * time.Millisecond, 200}, {time.Millisecond, 503}, {time.Hour, 503}} {
		now = now.Add(c.after)
		res, _ := s.Send("GET /me", "")
		if res.StatusCode != c.want || c.want == 503 && res.Header.Get("Retry-After") != "1" {
			t.Errorf("%v later: %d, Retry-After %q", c.after, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	feed.broken, now = false, now.Add(time.Minute)
	if status, answer := s.Call("GET /me", ""); status != 200 {
		t.Errorf("once it can be read again: %d %s", status, answer)
	}
}

func anybody(context.Context, rest.Caller, *rest.Endpoint) error { return nil }

func nothing[In any](context.Context, rest.Caller, In) (rest.None, error) { return rest.None{}, nil }
