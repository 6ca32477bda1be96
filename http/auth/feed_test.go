package auth_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/token"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

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
					if err := r.Poll(t.Context()); err != nil {
						t.Fatal(err)
					}
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
							if err := r.Poll(t.Context()); err != nil {
								t.Fatal(err)
							}
						}
					}
					g := auth.Guards{Tokens: stopped{halt(start), halt(tokens)}, Tenant: "default", Feed: r,
						Live: func(string, string, int64) bool {
							was := !known
							halt(live)()
							return was
						}}
					srv, err := edge.New(edge.Options{Now: func() time.Time { return now }, Guards: g.Table(), Authorize: anybody},
						[]rest.Endpoint{
							rest.Get("/me", "", rest.User, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
								halt(handler)()
								return rest.None{}, nil
							})})
					if err != nil {
						t.Fatal(err)
					}
					req := httptest.NewRequest("GET", "/me", nil)
					req.Header.Set("x-auth", "token")
					res, err := srv.App.Test(req, -1)
					if err != nil {
						t.Fatal(err)
					}
					want := 200
					if ended {
						want = 401
					}
					if res.StatusCode != want {
						t.Errorf("stopped for %v at %s, poller first %v, ended %v: %d", stop, at, first, ended, res.StatusCode)
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
	if err := r.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothing := func() {}
	g := auth.Guards{Tokens: stopped{nothing, nothing}, Tenant: "default", Feed: r,
		Live: func(string, string, int64) bool { return true }}
	srv, err := edge.New(edge.Options{Guards: g.Table(), Authorize: anybody}, []rest.Endpoint{
		rest.Get("/me", "", rest.User, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
			return rest.None{}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	feed.broken = true
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 200}, {999 * time.Millisecond, 200}, {time.Millisecond, 503}, {time.Hour, 503}} {
		now = now.Add(c.after)
		req := httptest.NewRequest("GET", "/me", nil)
		req.Header.Set("x-auth", "token")
		res, err := srv.App.Test(req, -1)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.want || c.want == 503 && res.Header.Get("Retry-After") != "1" {
			t.Errorf("%v later: %d, Retry-After %q", c.after, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	feed.broken, now = false, now.Add(time.Minute)
	req := httptest.NewRequest("GET", "/me", nil)
	req.Header.Set("x-auth", "token")
	if res, err := srv.App.Test(req, -1); err != nil || res.StatusCode != 200 {
		t.Errorf("once it can be read again: %v, %v", res, err)
	}
}

func anybody(context.Context, rest.Caller, *rest.Endpoint) error { return nil }
