package office

import (
	"fmt"
	"strconv"
	"testing"

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
		if got := len(n.Letters(t, boss.Number())); got != 4 {
			t.Errorf("%d letters to the capped phone, want 4", got)
		}
	})
}

// A hundred logins of one account do not use up the codes of other accounts behind the same address. Starts
// without any proof have a cap of their own.
func TestLoginsOfOneAccountLeaveOthersTheirCodes(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_IP_PER_HOUR=6", "HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_DESTINATION_PER_HOUR=300",
			"LIMITS_DESTINATION_PER_DAY=300", "LIMITS_USER_PER_DAY=300")
		n := s.Start()
		ask := func(path string, body any, from string) blackbox.Answer {
			t.Helper()
			return n.Do(t, "POST", path, body, blackbox.Headers{"X-Forwarded-For": from})
		}
		loud, quiet := s.AddUser("user"), s.AddUser("user")
		for i := range 101 {
			ask("/auth/login", blackbox.LoginBody(loud), fmt.Sprintf("2001:db8:1:1::%x", i+1)).Is(t, 200, "")
		}
		const neighbour = "2001:db8:1:1::ffff"
		f := blackbox.FlowOf(t, ask("/auth/login", blackbox.LoginBody(quiet), neighbour))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, quiet, "SMS")).Is(t, 200, "")

		reset := func(a blackbox.Account, from string) int {
			t.Helper()
			before := len(n.Letters(t, a.Number()))
			ask("/auth/password/reset", map[string]string{"countryCode": a.Country, "phoneNumber": a.Phone}, from).
				Is(t, 200, "")
			return len(n.Letters(t, a.Number())) - before
		}
		for i := range 4 {
			if got := reset(s.AddUser("user"), neighbour); (got == 1) != (i < 3) {
				t.Errorf("reset %d sent %d letters", i+1, got)
			}
		}
		if got := reset(s.AddUser("user"), "2001:db8:1:2::1"); got != 1 {
			t.Errorf("a reset from another network sent %d letters", got)
		}
		before := len(n.Letters(t, quiet.Number()))
		ask("/auth/login", blackbox.LoginBody(quiet), neighbour).Is(t, 200, "")
		if got := len(n.Letters(t, quiet.Number())) - before; got != 1 {
			t.Errorf("a login after the resets sent %d letters", got)
		}
	})
}
