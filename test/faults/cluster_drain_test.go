package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// SIGTERM drains a node: it is no longer ready, takes no new work, asks sockets to reconnect elsewhere,
// finishes open requests and exits with 0. The next start has the complete state.
func TestDrainFinishesOpenRequests(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		n.Ok(t, "GET", "/health/ready", nil, nil)
		who := n.Auth(t, demo)
		f := n.Login(t, demo)
		code := n.Code(t, demo, "SMS")
		sockets := []*blackbox.Socket{n.Socket(t, f), n.Socket(t, f)}
		poll := blackbox.LongPoll(n, f)
		time.Sleep(50 * time.Millisecond) // the poll has arrived

		began := time.Now()
		n.Terminate()
		for _, socket := range sockets {
			socket.ExpectClose(1012, blackbox.Within(5))
		}
		blackbox.Until(t, blackbox.Within(5), "not ready", func() bool {
			a, err := n.Try("GET", "/health/ready", nil, nil)
			return err != nil || a.Status == 503 && a.Code() == "DRAINING"
		})
		if a, err := n.Try("GET", blackbox.SessionsPath, nil, who); err == nil {
			a.Is(t, 503, "DRAINING")
		}
		p := <-poll
		if p.Err != nil || p.Code() != "CHALLENGE_NOT_COMPLETED" && p.Code() != "DRAINING" {
			t.Errorf("the long poll ended with %s, %v", p.Answer, p.Err)
		}
		storetest.Equal(t, n.Wait(), 0, "exit")
		if took := time.Since(began); took > blackbox.Within(10) {
			t.Errorf("the end took %v", took)
		}

		n = s.Start()
		n.Ok(t, "GET", blackbox.SessionsPath, nil, who)
		n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 200, "")
	})
}

// Every answer of a draining node is true: an accepted change is present afterwards, and no answer is cut off.
func TestDrainUnderLoadLosesNoChange(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_ENABLED=false", "LOG_LEVEL=info", "MFA_MAX_OPEN=100")
		n := s.Start()
		users := make([]blackbox.Account, 4)
		for i := range users {
			users[i] = s.AddUser("user")
		}
		var mu sync.Mutex
		var started []blackbox.Flow
		var broken []error
		var all sync.WaitGroup
		for _, u := range users {
			all.Go(func() {
				for {
					a, err := n.Try("POST", "/auth/login", blackbox.LoginBody(u), nil)
					mu.Lock()
					switch {
					case err != nil || a.Code() == "DRAINING":
						mu.Unlock()
						return // refused on connection
					case a.Status == 200:
						started = append(started, blackbox.FlowOf(t, a))
					default:
						broken = append(broken, blackbox.ErrorOf(a))
					}
					mu.Unlock()
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		n.Stop()
		all.Wait()
		for _, err := range broken {
			t.Error(err)
		}
		n = s.Start()
		if len(started) == 0 || s.Count("challenge") != len(started) {
			t.Errorf("%d challenges were acknowledged, %d are there", len(started), s.Count("challenge"))
		}
	})
}

// Two processes that start at once on one empty database both come up, with one set of keys and seeds.
func TestTwoProcessesStartOnEmptyDatabase(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			s := blackbox.NewSite(t, "postgres")
			other := filepath.Join(t.TempDir(), "other")
			s.Set("KEYS_MASTER_FILE=" + filepath.Join(s.Dir, "master.key"))
			a, b := s.Begin(), s.Begin("DATA_DIR="+other)
			a.Ready()
			b.Ready()
			for clause, want := range map[string]int{
				"users": 2, "mfa_method": 4, "mfa_action": 9, "keys WHERE purpose = 'signing'": 1, "keys WHERE purpose = " +
					"'sealing'": 1,
				"seed WHERE name = 'mfa'": 1, "(SELECT DISTINCT master_id FROM keys) m": 1,
			} {
				s.Has(want, clause)
			}
			// One of them made the logins, and its file has them.
			if _, err := os.Stat(filepath.Join(s.Dir, "dev-login.txt")); err != nil {
				s.Dir = other
			}
			b.Ok(t, "GET", blackbox.SessionsPath, nil, a.Auth(t, s.Seeded("user")))
			// A challenge that one process started and has read is completed at the other, once. The first one tells its
			// callers.
			demo := s.Seeded("user")
			f := a.Login(t, demo)
			a.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
			waiting := blackbox.LongPoll(a, f)
			sms, code := f.Method(t, "SMS"), a.Code(t, demo, "SMS")
			final := b.Complete(t, f, sms, code).Is(t, 200, "")
			blackbox.SameOutcome(t, final, a.Complete(t, f, sms, code))
			blackbox.SameOutcome(t, final, a.Result(t, f))
			blackbox.SameOutcome(t, final, (<-waiting).Answer)
			socket := a.Socket(t, f)
			socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
			socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
		})
	}
}
