package access

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

// A request that begins after the end of its session was acknowledged is refused (SEC-22).
func TestSessionRevocationIsImmediate(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		var tokens []blackbox.Headers
		for range 8 {
			tokens = append(tokens, n.Auth(t, demo))
		}
		hammer := newHammer(n.Client, tokens...)
		time.Sleep(100 * time.Millisecond)
		n.Ok(t, "DELETE", blackbox.SessionsPath, `{"all":true}`, tokens[0])
		acknowledged := time.Now()
		time.Sleep(100 * time.Millisecond)
		last, accepted, refused := hammer.stop(t)
		if last.After(acknowledged) {
			t.Errorf("a request that began %v after the acknowledgement was accepted", last.Sub(acknowledged))
		}
		if accepted == 0 || refused == 0 {
			t.Errorf("%d requests accepted and %d refused: too few to mean anything", accepted, refused)
		}
	})
}

// A second process on the same database learns of an ended session within a second.
func TestSessionRevocationReachesOtherProcesses(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	here := s.Start()
	there := s.Start()
	demo := s.Seeded("user")
	for _, how := range []struct {
		name, method, path string
		body               any
	}{
		{"logout", "POST", "/auth/logout", nil},
		{"all", "DELETE", blackbox.SessionsPath, `{"all":true}`},
	} {
		token := here.Auth(t, demo)
		there.Ok(t, "GET", blackbox.SessionsPath, nil, token) // issued by the other process
		hammer := newHammer(there.Client, token)
		here.Ok(t, how.method, how.path, how.body, token)
		acknowledged := time.Now()
		there.Awaits(t, blackbox.Within(5), 401, "GET", blackbox.SessionsPath, nil, token)
		last, _, _ := hammer.stop(t)
		if late := last.Sub(acknowledged); late > blackbox.Within(1) {
			t.Errorf("%s: accepted %v after the acknowledgement, want at most 1 s", how.name, late)
		}
	}
}

// hammer uses tokens continuously and records when one was last accepted.
type hammer struct {
	end  chan struct{}
	done sync.WaitGroup

	mu                sync.Mutex
	last              time.Time // start of the last accepted request
	accepted, refused int
	err               error
}

func newHammer(c blackbox.Client, tokens ...blackbox.Headers) *hammer {
	h := &hammer{end: make(chan struct{})}
	for _, token := range tokens {
		h.done.Go(func() {
			for {
				select {
				case <-h.end:
					return
				case <-time.After(2 * time.Millisecond):
				}
				began := time.Now()
				a, err := c.Try("GET", blackbox.SessionsPath, nil, token)
				h.mu.Lock()
				switch {
				case err != nil:
					h.err = err
				case a.Status == http.StatusOK:
					h.accepted++
					if began.After(h.last) {
						h.last = began
					}
				case a.Code() == "TOKEN_REVOKED":
					h.refused++
				default:
					h.err = blackbox.ErrorOf(a)
				}
				h.mu.Unlock()
			}
		})
	}
	return h
}

func (h *hammer) stop(t *testing.T) (last time.Time, accepted, refused int) {
	t.Helper()
	close(h.end)
	h.done.Wait()
	if h.err != nil {
		t.Fatal(h.err)
	}
	return h.last, h.accepted, h.refused
}

// A login that completes during a password change either opens no session, or its session ends with the others
// (D-AUTH-11).
func TestNoSessionSurvivesPasswordChange(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		mine, _ := n.Session(t, demo)
		born := 0
		for round := range 15 {
			login := n.Login(t, demo)
			loginCode := n.Code(t, demo, "SMS")
			next := fmt.Sprintf("lantern-orchard-%d", round)
			change := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password", map[string]string{"oldPassword": demo.Password,
				"password": next, "passwordVerify": next}, blackbox.Headers{"x-auth": mine}))
			changeCode := n.Code(t, demo, "SMS")
			flows, codes := []blackbox.Flow{login, change}, []string{loginCode, changeCode}
			answers := blackbox.Crowd(t, 2, func(i int) (blackbox.Answer, error) {
				return n.TryComplete(flows[i], flows[i].Method(t, "SMS"), codes[i])
			})
			answers[1].Is(t, 200, "")
			demo.Password = next
			if token := answers[0].Header.Get("x-auth"); token != "" {
				born++
				n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}).Is(t, 401, "TOKEN_REVOKED")
			}
			storetest.Equal(t, len(blackbox.Sessions(t, n, mine)), 1, "sessions after round", round)
		}
		t.Logf("%d of 15 logins came first", born)
	})
}

// A login whose last step coincides with the change has no session afterwards, in either order.
func TestContactChangeDuringLogin(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_ENABLED=false")
		n := s.Start()
		boss, me := blackbox.Admin(t, s, n), s.AddUser("user")
		born := 0
		for round := range 24 {
			f := n.Login(t, me)
			code := n.Code(t, me, "SMS")
			answers := blackbox.Crowd(t, 2, func(i int) (blackbox.Answer, error) {
				if i == 0 {
					return n.TryComplete(f, f.Method(t, "SMS"), code)
				}
				return n.Try("POST", blackbox.MailPath, map[string]string{"userId": me.ID,
					"mailAddress": fmt.Sprintf("round%d@example.test", round)}, boss)
			})
			answers[1].Is(t, 200, "")
			completed := answers[0]
			if completed.Status != 200 {
				completed.Is(t, 409, "CHALLENGE_CLOSED")
				continue
			}
			born++
			token := blackbox.Headers{"x-auth": completed.Header.Get("x-auth")}
			n.Do(t, "GET", blackbox.SessionsPath, nil, token).Is(t, 401, "TOKEN_REVOKED")
		}
		t.Logf("%d of 24 logins were first", born)
	})
}

// With http.public_url set, a proof names that URL or an origin of http.cors_origins. The host of the request is the
// choice of its sender. A guard route for it makes it a target at the gateway only. Without the setting it counts.
func TestProofNamesTheService(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false", "SESSIONS_BIND=requests", "HTTP_TRUSTED_PROXIES=127.0.0.1/32",
			"HTTP_PUBLIC_URL=https://id.example.com", "HTTP_CORS_ORIGINS=https://app.example.com")
		demo := s.Seeded("user")
		k := &blackbox.Keyed{Key: blackbox.EdKey(t)}
		login := func(base string) blackbox.Answer {
			return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), k.Proof(t, n, "POST", "/auth/login",
				func(c *dpop.Claims) { c.Target = base + "/auth/login" }))
		}
		login(n.URL).Is(t, 401, "DPOP_INVALID")
		login("https://evil.example").Is(t, 401, "DPOP_INVALID")
		login("https://id.example.com").Is(t, 200, "")
		login("HTTPS://ID.example.com:443/%61uth/..").Is(t, 200, "")
		login("https://app.example.com").Is(t, 200, "")

		n.Ok(t, "POST", "/admin/guard/routes", `{"host":"127.0.0.1","method":"GET","path":"/x","mode":"session"}`,
			blackbox.Admin(t, s, n))
		login(n.URL).Is(t, 401, "DPOP_INVALID")
		f := blackbox.FlowOf(t, login("https://id.example.com"))
		k.Token = n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Header.Get("x-auth")
		for base, want := range map[string]int{n.URL: 204, "https://evil.example": 401} {
			h := k.Proof(t, n, "GET", "/x", func(c *dpop.Claims) { c.Target = base + "/x" })
			h["X-Original-Method"], h["X-Original-URI"], h["X-Original-Host"] = "GET", "/x", strings.TrimPrefix(n.URL, "http://")
			storetest.Equal(t, n.Do(t, "GET", "/guard/check", nil, h).Status, want, "at a gateway for", base)
		}
	})
}
