package access

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

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
