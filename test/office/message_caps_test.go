package office

import (
	"strconv"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Messages cost money, so they are capped (D-EXT-05). A user who has proved the password or a session gets an
// error. A user who also has an authenticator needs no message. Messages are counted in rows, so a restart
// resets nothing.
func TestMessageCapsSurviveRestart(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_DESTINATION_PER_HOUR=4", "LIMITS_DESTINATION_PER_DAY=4",
			"MFA_GUARDED="+blackbox.GuardedKey+"="+blackbox.GuardedCode)
		n := s.Start()
		boss := s.Seeded("admin")
		who := blackbox.Admin(t, s, n)
		for range 3 {
			n.Login(t, boss)
		}
		sent := len(n.Letters(t, ""))
		within := n.Login(t, s.Seeded("user")) // other users' messages are counted separately
		n.Complete(t, within, within.Method(t, "SMS"), n.Code(t, s.Seeded("user"), "SMS")).Is(t, 200, "")
		if got := len(n.Letters(t, "")); sent != 8 || got != 10 {
			t.Fatalf("%d letters and then %d, want 8 and 10", sent, got)
		}
		for round := range 2 {
			for _, capped := range []blackbox.Answer{n.Do(t, "POST", "/auth/login", blackbox.LoginBody(boss), nil),
				n.Do(t, "POST", blackbox.ActionsPath, blackbox.NewAction("ONE_MORE"), who)} {
				capped.Is(t, 429, "RATE_LIMITED")
				if wait, _ := strconv.Atoi(capped.Header.Get("Retry-After")); wait < 3000 || wait > 24*3600 {
					t.Errorf("%s: Retry-After %q", capped, capped.Header.Get("Retry-After"))
				}
			}
			stranger := boss
			stranger.Password = "not-the-password"
			n.Do(t, "POST", "/auth/login", blackbox.LoginBody(stranger), nil).Is(t, 401, "INVALID_CREDENTIALS")
			if round == 0 {
				n.Kill()
				n = s.Start()
			}
		}
		storetest.Equal(t, len(n.Letters(t, boss.Number())), 4, "letters to the capped phone")
	})
}
