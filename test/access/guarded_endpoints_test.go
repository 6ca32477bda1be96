package access

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// An endpoint that cannot be guarded stops the start, and the message names the reason.
func TestInvalidGuardStopsStart(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Set("MFA_GUARDED=" + blackbox.GuardedKey + "=VERIFY_EMAIL").Begin()
	if code := n.Wait(); code != 1 && code != 2 || !strings.Contains(n.Log(), "VERIFY_EMAIL") {
		t.Errorf("exit %d, want 1 or 2 and a line about VERIFY_EMAIL:\n%s", code, n.Log())
	}
}

// After a kill during an execution, its effect is complete or absent. Repeating the completion executes it
// once.
func TestGuardedRequestKilledDuringExecution(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("MFA_GUARDED="+blackbox.GuardedKey+"="+blackbox.GuardedCode, "LIMITS_ENABLED=false", "LOG_LEVEL=info")
		n := s.Start()
		boss := s.Seeded("admin")
		who := blackbox.Admin(t, s, n)
		lost := 0
		for i := range 8 {
			action := fmt.Sprintf("KILLED_%d", i)
			f := blackbox.FlowOf(t, n.Do(t, "POST", blackbox.ActionsPath, blackbox.NewAction(action), who))
			sms, code := f.Method(t, "SMS"), n.Code(t, boss, "SMS")
			answered := make(chan error, 1)
			go func() {
				_, err := n.TryComplete(f, sms, code)
				answered <- err
			}()
			time.Sleep(time.Duration(rand.IntN(8_000)) * time.Microsecond)
			n.Kill()
			if <-answered != nil {
				lost++
			}
			n = s.Start()
			got := blackbox.ReadFinal(t, n.Complete(t, f, sms, code).Is(t, 200, ""))
			if !got.ExecResult.Success || got.ExecResult.Data["actionCode"] != action {
				t.Errorf("after the kill: %+v", got)
			}
			s.Has(1, "mfa_action WHERE code = $1", action)
		}
		t.Logf("%d of 8 answers were lost", lost)
	})
}
