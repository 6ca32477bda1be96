package access

import (
	"fmt"
	"sync"
	"testing"

	"castellan/internal/blackbox"
)

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
			var completed, changed blackbox.Answer
			var failed [2]error
			var both sync.WaitGroup
			both.Go(func() { completed, failed[0] = n.TryComplete(f, f.Method(t, "SMS"), code) })
			both.Go(func() {
				changed, failed[1] = n.Try("POST", blackbox.MailPath, map[string]string{"userId": me.ID,
					"mailAddress": fmt.Sprintf("round%d@example.test", round)}, boss)
			})
			both.Wait()
			if failed != [2]error{} || changed.Status != 200 {
				t.Fatalf("%v, %s", failed, changed)
			}
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
