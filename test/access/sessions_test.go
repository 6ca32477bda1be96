package access

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// Sessions are listed, and ended one by one or all together. An ended session is refused at once (D-AUTH-01,
// D-EXT-01).
func TestSessionListAndLogout(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo, other := s.Seeded("user"), s.Seeded("admin")
		f := blackbox.FlowOf(t, n.Do(
			t,
			"POST",
			"/auth/login",
			blackbox.LoginBody(demo),
			blackbox.Headers{
				"device-brand": "Acme",
				"device-model": "One",
				"device-desc":  "the blue one",
				"User-Agent":   "test",
			},
		))
		first := n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Header.Get("x-auth")
		tokens, ids := []string{first}, []string{blackbox.ClaimsOf(t, first)["sid"].(string)}
		for range 3 {
			token, id := n.Session(t, demo)
			tokens, ids = append(tokens, token), append(ids, id)
		}
		stranger, strangersID := n.Session(t, other)

		raw := n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": tokens[1]})
		var objects []map[string]any
		raw.Read(t, &objects)
		for _, o := range objects {
			if k := slices.Sorted(maps.Keys(o)); !slices.Equal(
				k,
				[]string{
					"countryName",
					"createdAt",
					"current",
					"deviceBrand",
					"deviceDesc",
					"deviceModel",
					"ip",
					"lastSeenAt",
					"sessionId",
				},
			) {
				t.Errorf("a session of the keys %v", k)
			}
		}
		all := blackbox.Sessions(t, n, tokens[1])
		if len(all) != 4 || all[0].SessionID != ids[3] || all[3].SessionID != ids[0] {
			t.Fatalf("sessions %+v, want the caller's four, newest first", all)
		}
		for i, one := range all {
			if one.Current != (i == 2) || one.IP != "127.0.0.1" {
				t.Errorf("session %d: %+v", i, one)
			}
			if at, err := time.Parse("2006-01-02T15:04:05.000Z", one.CreatedAt); err != nil || time.Since(at) > time.Minute {
				t.Errorf("createdAt %q: %v", one.CreatedAt, err)
			}
		}
		if last := all[3]; last.DeviceBrand != "Acme" || last.DeviceModel != "One" || last.DeviceDesc != "the blue one" {
			t.Errorf("the device of %+v", last)
		}

		end := func(body any, token string) blackbox.Answer {
			t.Helper()
			return n.Do(t, "DELETE", blackbox.SessionsPath, body, blackbox.Headers{"x-auth": token})
		}
		// Another user's session gets the same answer as one that does not exist.
		unknown := end(map[string]string{"sessionId": "01JD0000000000000000000000"}, tokens[0]).Is(t, 404, "RECORD_NOT_FOUND")
		if foreign := end(map[string]string{"sessionId": strangersID},
			tokens[0]); blackbox.Alike(foreign) != blackbox.Alike(unknown) {
			t.Errorf("another user's session: %s, no session at all: %s", foreign, unknown)
		}
		end(`{}`, tokens[0]).Is(t, 400, "INVALID_FIELD")
		end(`{"all":false}`, tokens[0]).Is(t, 400, "INVALID_FIELD")
		end(map[string]any{"all": true, "sessionId": ids[0]}, tokens[0]).Is(t, 400, "INVALID_FIELD")

		if got := end(map[string]string{"sessionId": ids[3]}, tokens[0]).Is(t, 200, ""); string(
			got.Body,
		) != `{"data":{"ended":1}}` {
			t.Errorf("ended one: %s", got)
		}
		n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": tokens[3]}).Is(t, 401, "TOKEN_REVOKED")
		n.Do(t, "DELETE", blackbox.SessionsPath+"?sessionId="+ids[2], nil, blackbox.Headers{"x-auth": tokens[0]}).
			Is(t, 200, "")
			// a DELETE without a body (D-GEN-02)
		n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": tokens[2]}).Is(t, 401, "TOKEN_REVOKED")
		if all := blackbox.Sessions(t, n, tokens[0]); len(all) != 2 {
			t.Errorf("%d sessions are listed, want 2", len(all))
		}

		// The outcome of a login is not returned after its session has ended.
		if got := n.Ok(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": tokens[0]}); string(got.Body) != "{}" {
			t.Errorf("logout: %s", got)
		}
		n.Do(t, "POST", "/auth/logout", nil, blackbox.Headers{"x-auth": tokens[0]}).Is(t, 401, "TOKEN_REVOKED")
		n.Result(t, f).Is(t, 409, "CHALLENGE_CLOSED")
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).
			Is(t, 409, "METHOD_ALREADY_COMPLETED")
			// the code belongs to a later login
		socket := n.Socket(t, f)
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		socket.ExpectClose(4410, blackbox.Within(5))

		fresh, _ := n.Session(t, demo)
		if got := end(`{"all":true}`, fresh).Is(t, 200, ""); string(got.Body) != `{"data":{"ended":2}}` {
			t.Errorf("ended all: %s", got)
		}
		gone := append(slices.Clone(tokens), fresh)
		check := func() {
			t.Helper()
			for _, token := range gone {
				n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}).Is(t, 401, "TOKEN_REVOKED")
			}
			blackbox.Sessions(t, n, stranger)
		}
		check()
		later, _ := n.Session(t, demo)
		n.Kill()
		n = s.Start()
		check()
		if all := blackbox.Sessions(t, n, later); len(all) != 1 {
			t.Errorf("%d sessions are listed, want the one that lives", len(all))
		}
	})
}

// A request that begins after the end of its session was acknowledged is refused (SEC-22).
func TestSessionRevocationIsImmediate(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		var tokens []string
		for range 8 {
			token, _ := n.Session(t, demo)
			tokens = append(tokens, token)
		}
		hammer := newHammer(n.Client, tokens)
		time.Sleep(100 * time.Millisecond)
		n.Ok(t, "DELETE", blackbox.SessionsPath, `{"all":true}`, blackbox.Headers{"x-auth": tokens[0]})
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
		token, _ := here.Session(t, demo)
		there.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}) // issued by the other process
		hammer := newHammer(there.Client, []string{token})
		here.Ok(t, how.method, how.path, how.body, blackbox.Headers{"x-auth": token})
		acknowledged := time.Now()
		blackbox.Until(t, blackbox.Within(5), "refused there", func() bool {
			a, err := there.Try("GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
			return err == nil && a.Code() == "TOKEN_REVOKED"
		})
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

func newHammer(c blackbox.Client, tokens []string) *hammer {
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
				a, err := c.Try("GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
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

// The header tenant-id is checked only where the interface marks it (D-AUTH-02).
func TestTenantHeaderIsCheckedWhereMarked(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("TENANT_ID=acme")
		n := s.Start()
		boss := blackbox.Admin(t, s, n)
		with := func(tenant string) blackbox.Headers {
			h := maps.Clone(boss)
			h["tenant-id"] = tenant
			return h
		}
		n.Ok(t, "GET", blackbox.ActionsPath, nil, boss)
		n.Ok(t, "GET", blackbox.ActionsPath, nil, with("acme"))
		for _, wrong := range []string{"default", "ACME", "acme2", "acm"} {
			n.Do(t, "GET", blackbox.ActionsPath, nil, with(wrong)).Is(t, 403, "TENANT_MISMATCH")
			n.Ok(t, "GET", blackbox.SessionsPath, nil, with(wrong))
		}
		if tid := blackbox.ClaimsOf(t, boss["x-auth"])["tid"]; tid != "acme" {
			t.Errorf("tid %v", tid)
		}
	})
}
