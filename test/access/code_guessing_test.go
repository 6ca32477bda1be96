package access

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"castellan/internal/blackbox"
)

// startAll starts the nodes of a site: one on SQLite, and two that share the database on PostgreSQL, where a
// challenge may have two owners at once.
func startAll(s *blackbox.Site) []*blackbox.Node {
	all := []*blackbox.Node{s.Start()}
	if s.Kind == "postgres" {
		all = append(all, s.Start())
	}
	return all
}

const parallel = 200

// Two hundred copies of the last correct value cause one execution and one outcome, which all of them receive
// (D-2FA-14, SEC-02).
func TestParallelRightCodesExecuteOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		all := startAll(s)
		n, demo := all[0], s.Seeded("user")
		f := n.Login(t, demo)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		answers := blackbox.Crowd(t, parallel,
			func(i int) (blackbox.Answer, error) { return all[i%len(all)].TryComplete(f, sms, code) })
		token := blackbox.CheckFinal(t, f, answers[0])
		for _, a := range answers {
			blackbox.SameOutcome(t, answers[0], a)
		}
		if sessions, outcomes := s.Count("session"), s.Count("outcome"); sessions != 1 || outcomes != 1 {
			t.Errorf("%d sessions and %d outcomes, want one of each", sessions, outcomes)
		}
		var list []any
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}).Read(t, &list)
		if len(list) != 1 {
			t.Errorf("%d sessions in the list", len(list))
		}
		frames(t, all[len(all)-1].Socket(t, f), f, token, sms)
	})
}

// One copy succeeds for a method that is not the last.
func TestParallelRightCodesOfFirstMethodSucceedOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		all := startAll(s)
		n, demo := all[0], s.Seeded("user")
		blackbox.TwoMethods(t, n, blackbox.Admin(t, s, n))
		blackbox.Until(t, blackbox.Within(2), "the policy known everywhere", func() bool {
			f := all[len(all)-1].Login(t, demo)
			return all[len(all)-1].Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Header.Get("x-auth") == ""
		})
		f := n.Login(t, demo)
		socket := n.Socket(t, f)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		got := blackbox.CountByCode(
			blackbox.Crowd(t, parallel, func(i int) (blackbox.Answer, error) {
				return all[i%len(all)].TryComplete(f, sms,
					code)
			}),
		)
		if want := map[string]int{"200": 1, "409METHOD_ALREADY_COMPLETED": parallel - 1}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		final := n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "")
		blackbox.CheckFinal(t, f, final)
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
	})
}

// Of two hundred wrong values, however they arrive, five are checked (D-2FA-13, SEC-01, SEC-02).
func TestParallelWrongCodesAreLimited(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		all := startAll(s)
		n, demo := all[0], s.Seeded("user")
		f := n.Login(t, demo)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		answers := blackbox.Crowd(t, parallel, func(i int) (blackbox.Answer, error) {
			wrong, _ := strconv.Atoi(code)
			return all[i%len(all)].TryComplete(f, sms, fmt.Sprintf("%06d", (wrong+1+i)%1_000_000))
		})
		got := blackbox.CountByCode(answers)
		busy := len(all) > 1 // two owners without a connection may both give up a busy row, unread
		if got["422OTP_INVALID"] != 5 || got["423METHOD_LOCKED"]+got["503UNAVAILABLE"] != parallel-5 ||
			!busy && got["503UNAVAILABLE"] > 0 {
			t.Errorf("got %v, want 5 evaluated and the rest refused", got)
		}
		var left []int
		for _, a := range answers {
			if a.Status == 422 {
				left = append(left, blackbox.AttemptsLeft(t, a))
			}
		}
		if slices.Sort(left); !slices.Equal(left, []int{0, 1, 2, 3, 4}) {
			t.Errorf("attemptsLeft %v, want each of 0 to 4 once", left)
		}
		n.Complete(t, f, sms, code).Is(t, 423, "METHOD_LOCKED") // the correct one is too late
		n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, "")
	})
}

// One correct value among wrong ones wins at most once, and at most five are checked.
func TestParallelMixedCodesWinAtMostOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		all := startAll(s)
		n, demo := all[0], s.Seeded("user")
		f := n.Login(t, demo)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		answers := blackbox.Crowd(t, parallel, func(i int) (blackbox.Answer, error) {
			value := blackbox.WrongFor(code)
			if i == parallel/2 {
				value = code
			}
			return all[i%len(all)].TryComplete(f, sms, value)
		})
		got := blackbox.CountByCode(answers)
		refused := got["423METHOD_LOCKED"] + got["409METHOD_ALREADY_COMPLETED"]
		if len(all) > 1 {
			refused += got["503UNAVAILABLE"]
		}
		if got["200"] > 1 || got["422OTP_INVALID"] > 5 || got["200"]+got["422OTP_INVALID"]+refused != parallel {
			t.Errorf("got %v", got)
		}
		if got["200"] == 0 && got["422OTP_INVALID"] != 5 || got["200"] != s.Count("session") {
			t.Errorf("got %v and %d sessions", got, s.Count("session"))
		}
	})
}

// The counter of wrong values does not live in the process: a kill resets nothing (SEC-01).
func TestAttemptCountSurvivesKill(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		f := n.Login(t, demo)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		for want := 4; want >= 0; want-- {
			if got := blackbox.AttemptsLeft(t, n.Complete(t, f, sms, blackbox.WrongFor(code))); got != want {
				t.Errorf("attemptsLeft %d, want %d", got, want)
			}
			n.Kill()
			n = s.Start()
		}
		n.Complete(t, f, sms, code).Is(t, 423, "METHOD_LOCKED")
		n.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
	})
}

// The tenth wrong value closes the challenge for every method. The field attemptsLeft is the smaller of what
// method and challenge have left. A renewal unlocks a locked method, but does not reset the challenge's count.
func TestTenWrongValuesCloseChallenge(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		blackbox.Tune(t, n, blackbox.Admin(t, s, n), "SMS", 120_000, 1)
		f := n.Login(t, demo)
		sms, mail := f.Method(t, "SMS"), f.Method(t, "MAIL")
		socket := n.Socket(t, f)
		wrong := func(m blackbox.Method, want ...int) {
			t.Helper()
			for _, left := range want {
				if got := blackbox.AttemptsLeft(t, n.Complete(t, f, m, blackbox.WrongFor(n.Code(t, demo, m.Name)))); got != left {
					t.Errorf("%s: attemptsLeft %d, want %d", m.Name, got, left)
				}
			}
		}
		wrong(sms, 4, 3, 2, 1, 0)
		n.Complete(t, f, sms, n.Code(t, demo, "SMS")).Is(t, 423, "METHOD_LOCKED")
		n.Renew(t, f, sms).Is(t, 200, "")
		wrong(sms, 4, 3)     // seven of the challenge
		wrong(mail, 2, 1, 0) // and ten
		for _, m := range f.MethodList {
			n.Complete(t, f, m, n.Code(t, demo, m.Name)).Is(t, 409, "CHALLENGE_CLOSED")
			n.Renew(t, f, m).Is(t, 409, "CHALLENGE_CLOSED")
		}
		n.Result(t, f).Is(t, 409, "CHALLENGE_CLOSED")
		socket.ExpectClose(4410, blackbox.Within(5))
		n.Socket(t, f).ExpectClose(4410, blackbox.Within(5))
		n.Kill()
		n = s.Start()
		n.Complete(t, f, mail, n.Code(t, demo, "MAIL")).Is(t, 409, "CHALLENGE_CLOSED")
	})
}

// Wrong values also count per user and flow, across challenges, processes and spellings of the phone number
// (SEC-03). Other users and other flows are not affected (SEC-05).
func TestWrongValuesCountPerUser(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		// Message caps are off, because twenty challenges would reach them. No setting disables this count.
		s.Set("MFA_GUARDED=POST /admin/system/mfa/actions=ADD_ACTION_GUARDED", "LIMITS_ENABLED=false")
		n := s.Start()
		boss := s.Seeded("admin")
		inside := blackbox.Admin(t, s, n)
		spellings := []map[string]string{
			{"countryCode": "90", "phoneNumber": boss.Phone}, {"countryCode": "+90", "phoneNumber": "0" + boss.Phone},
			{"countryCode": "0090", "phoneNumber": boss.Phone[:3] + " " + boss.Phone[3:]}, {"email": "  " + boss.Mail},
		}
		for i := range 20 {
			if i == 10 {
				n.Kill()
				n = s.Start()
			}
			body := maps.Clone(spellings[i%len(spellings)])
			body["password"] = boss.Password
			f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/login", body, nil))
			blackbox.AttemptsLeft(t, n.Complete(t, f, f.MethodList[i%2], blackbox.WrongFor(n.Code(t, boss,
				f.MethodList[i%2].Name))))
		}
		f := n.Login(t, boss)
		for _, m := range f.MethodList {
			got := n.Complete(t, f, m, n.Code(t, boss, m.Name)).Is(t, 429, "RATE_LIMITED")
			if after, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || after < 3000 || after > 3600 {
				t.Errorf("Retry-After %q, want about an hour", got.Header.Get("Retry-After"))
			}
		}
		n.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED") // correct values did not close it either

		n.Session(t, s.Seeded("user"))
		guarded := blackbox.FlowOf(
			t,
			n.Do(
				t,
				"POST",
				"/admin/system/mfa/actions",
				`{"actionCode":"ONE_MORE","title":{"en":"One more"},"infoTableHeaders":{}}`,
				inside,
			),
		)
		n.Complete(t, guarded, guarded.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, "")
	})
}
