package access

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"castellan/domain/kit/storetest"
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

// crowd completes a method two hundred times at once, on every node.
func crowd(t *testing.T, all []*blackbox.Node, f blackbox.Flow, m blackbox.Method,
	value func(i int) string) []blackbox.Answer {
	t.Helper()
	return blackbox.Crowd(t, parallel,
		func(i int) (blackbox.Answer, error) { return all[i%len(all)].TryComplete(f, m, value(i)) })
}

const parallel = 200

// Of two hundred values at once, however they arrive, five wrong ones are checked and one right one executes
// (D-2FA-13, D-2FA-14, SEC-01, SEC-02).
func TestParallelCodesExecuteOnce(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		all := startAll(s)
		n, last := all[0], all[len(all)-1]
		busy := len(all) > 1 // two owners without a connection may both give up a busy row, unread
		start := func() (blackbox.Account, blackbox.Flow, blackbox.Method, string) {
			who := s.AddUser("user")
			f := n.Login(t, who)
			return who, f, f.Method(t, "SMS"), n.Code(t, who, "SMS")
		}

		// All receive the one outcome of the last correct value.
		_, f, sms, code := start()
		answers := crowd(t, all, f, sms, func(int) string { return code })
		token := blackbox.CheckFinal(t, f, answers[0])
		for _, a := range answers {
			blackbox.SameOutcome(t, answers[0], a)
		}
		if sessions, outcomes := s.Count("session"), s.Count("outcome"); sessions != 1 || outcomes != 1 {
			t.Errorf("%d sessions and %d outcomes, want one of each", sessions, outcomes)
		}
		frames(t, last.Socket(t, f), f, token, sms)

		// Of the wrong ones five are checked, and the correct one is too late.
		who, f, sms, code := start()
		wrong, _ := strconv.Atoi(code)
		answers = crowd(t, all, f, sms, func(i int) string { return fmt.Sprintf("%06d", (wrong+1+i)%1_000_000) })
		got := blackbox.CountByCode(answers)
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
		n.Complete(t, f, sms, code).Is(t, 423, "METHOD_LOCKED")
		n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, who, "MAIL")).Is(t, 200, "")

		// One correct value among wrong ones wins at most once.
		who, f, sms, code = start()
		got = blackbox.CountByCode(crowd(t, all, f, sms, func(i int) string {
			if i == parallel/2 {
				return code
			}
			return blackbox.WrongFor(code)
		}))
		refused := got["423METHOD_LOCKED"] + got["409METHOD_ALREADY_COMPLETED"]
		if busy {
			refused += got["503UNAVAILABLE"]
		}
		if got["200"] > 1 || got["422OTP_INVALID"] > 5 || got["200"]+got["422OTP_INVALID"]+refused != parallel {
			t.Errorf("got %v", got)
		}
		if sessions := s.Count("session WHERE user_id = $1", who.ID); got["200"] != sessions ||
			got["200"] == 0 && got["422OTP_INVALID"] != 5 {
			t.Errorf("got %v and %d sessions", got, sessions)
		}

		// One copy succeeds for a method that is not the last.
		blackbox.TwoMethods(t, n, blackbox.Admin(t, s, n))
		blackbox.Until(t, blackbox.Within(2), "the policy known everywhere", func() bool {
			who := s.AddUser("user")
			f := last.Login(t, who)
			return last.Complete(t, f, f.Method(t, "SMS"), n.Code(t, who, "SMS")).Header.Get("x-auth") == ""
		})
		who, f, sms, code = start()
		socket := n.Socket(t, f)
		got = blackbox.CountByCode(crowd(t, all, f, sms, func(int) string { return code }))
		if want := map[string]int{"200": 1, "409METHOD_ALREADY_COMPLETED": parallel - 1}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		blackbox.CheckFinal(t, f, n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, who, "MAIL")).Is(t, 200, ""))
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
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
			storetest.Equal(t, blackbox.AttemptsLeft(t, n.Complete(t, f, sms, blackbox.WrongFor(code))), want, "attemptsLeft")
			n.Kill()
			n = s.Start()
		}
		n.Complete(t, f, sms, code).Is(t, 423, "METHOD_LOCKED")
		n.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
	})
}
