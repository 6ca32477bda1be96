package office

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A client with a key works on one login for longer than its tokens live, also with several requests at once and where
// each request needs a proof. Without the key its token is not enough there.
func TestGoClientRenewsByItsKey(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		ctx := t.Context()
		n := s.Start("LIMITS_ENABLED=false", "TOKENS_X_AUTH_TTL=5s", "SESSIONS_BIND=requests")
		demo := s.Seeded("user")
		link := &losing{}
		c, err := client.New(n.URL)
		storetest.Must(t, err)
		c.HTTP, c.Key = &http.Client{Transport: link}, client.NewKey(blackbox.ECKey(t))
		f, err := c.Login(ctx, client.Credentials{Email: demo.Mail, Password: demo.Password})
		storetest.Must(t, err)
		m, _ := f.Method("SMS")
		if o, err := f.Complete(ctx, m, n.Code(t, demo, "SMS")); err != nil || !o.Success {
			t.Fatalf("%+v, %v", o, err)
		}
		first := c.Token
		until := time.Now().Add(11 * time.Second)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for time.Now().Before(until) {
					var sessions []struct{ Current bool }
					if err := c.Call(ctx, "GET", "/auth/sessions?count=false", nil, &sessions); err != nil || len(sessions) != 1 {
						t.Errorf("%+v, %v", sessions, err)
						return
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if c.Token == first {
			t.Error("the token was never renewed")
		}
		link.lost.Store(1) // a lost answer of a renewal costs nothing
		r, err := c.RenewSession(ctx)
		if left := time.Until(r.SessionEndsAt); err != nil || left < 11*time.Hour || left > 12*time.Hour {
			t.Errorf("%+v, %v", r, err)
		}
		thief := &client.Client{URL: c.URL, Token: c.Token}
		if err := thief.Call(ctx, "GET", "/auth/sessions", nil, nil); client.CodeOf(err) != "DPOP_INVALID" {
			t.Errorf("a copied token: %v", err)
		}
		if err := c.Call(ctx, "POST", "/auth/logout", nil, nil); err != nil {
			t.Error(err)
		}
		if _, err := c.RenewSession(ctx); client.CodeOf(err) != "TOKEN_REVOKED" {
			t.Errorf("after the logout: %v", err)
		}
	})
}

// A clock that is wrong by an hour makes no renewal due, and after a renewal that failed the client uses its token for
// a while before it tries again.
func TestGoClientRenewsNoMoreThanNeeded(t *testing.T) {
	now, status, renewals := time.Now(), http.StatusOK, 0
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/auth/sessions/renew" {
			return
		}
		renewals++
		w.Header().Set("X-Auth", boundToken(now.Add(-time.Hour)))
		w.WriteHeader(status)
		io.WriteString(w, `{"data":{}}`)
	}))
	defer service.Close()
	for name, one := range map[string]struct {
		issued time.Time
		status int
	}{
		"behind": {now.Add(-time.Hour), http.StatusOK}, "failing": {now.Add(-28 * time.Minute), http.StatusBadRequest},
	} {
		c := &client.Client{URL: service.URL, Token: boundToken(one.issued), Key: client.NewKey(blackbox.ECKey(t))}
		status, renewals = one.status, 0
		for range 3 {
			if err := c.Call(t.Context(), "GET", "/auth/sessions", nil, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if renewals != 1 {
			t.Errorf("%s: %d renewals", name, renewals)
		}
	}
}

// A token that expires on its way is renewed and the request repeated. If the renewal is refused, the request fails.
func TestGoClientRenewsTokenThatExpiredOnItsWay(t *testing.T) {
	for name, refused := range map[string]bool{"renewed": false, "refused": true} {
		old, now := boundToken(time.Now()), boundToken(time.Now().Add(time.Second))
		var calls []string
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls = append(calls, r.URL.Path)
			switch renewal := r.URL.Path == "/auth/sessions/renew"; {
			case renewal && !refused:
				w.Header().Set("X-Auth", now)
				io.WriteString(w, `{"data":{}}`)
			case renewal || r.Header.Get("X-Auth") == old:
				w.WriteHeader(http.StatusUnauthorized)
				io.WriteString(w, `{"status":401,"code":"TOKEN_EXPIRED"}`)
			}
		}))
		c := &client.Client{URL: service.URL, Token: old, Key: client.NewKey(blackbox.ECKey(t))}
		err := c.Call(t.Context(), "POST", "/auth/own", nil, nil)
		service.Close()
		want := []string{"/auth/own", "/auth/sessions/renew"}
		if !refused {
			want = append(want, "/auth/own")
		}
		if (client.CodeOf(err) == "TOKEN_EXPIRED") != refused || !slices.Equal(calls, want) {
			t.Errorf("%s: %v after %v", name, err, calls)
		}
	}
}

// boundToken returns a token of half an hour whose session is bound to a key.
func boundToken(issued time.Time) string {
	claims := fmt.Sprintf(`{"iat":%d,"exp":%d,"cnf":{"jkt":"k"}}`, issued.Unix(), issued.Add(30*time.Minute).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}
