package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A renewal makes a new code, which alone completes the method, and extends methods that would expire before it. The
// answer has the shape of a start, with the open methods (D-2FA-22, D-2FA-23).
func TestRenewalMakesNewCode(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("MFA_MAX_RENEWALS=1")
		boss, demo := blackbox.Admin(t, s, n), s.Seeded("user")
		blackbox.Tune(t, n, boss, "SMS", 90_000, 1)
		blackbox.Tune(t, n, boss, "MAIL", 60_000, 1)
		blackbox.TwoMethods(t, n, boss)
		f := n.Login(t, demo)
		sms, mail, old := f.Method(t, "SMS"), f.Method(t, "MAIL"), n.Code(t, demo, "SMS")
		if sms.Expire != 90 || sms.RenewStart != 1 || mail.Expire != 60 {
			t.Fatalf("methods %+v, want the times that were set a moment ago", f.MethodList)
		}
		renew := func(m blackbox.Method) (c blackbox.Challenge) {
			t.Helper()
			var body struct{ Challenge blackbox.Challenge }
			n.Renew(t, f, m).Is(t, 200, "").Keys(t, "challenge").Read(t, &body)
			return body.Challenge
		}
		r := renew(sms)
		if r.ChallengeID != f.ChallengeID || r.TS != f.TS || r.Status != f.Status || r.Expire != f.Expire ||
			len(r.MethodList) != 2 || r.MethodList[0].ID != sms.ID || r.MethodList[0].Expire != 90 {
			t.Errorf("renewed %+v, want the challenge unchanged: %+v", r, f.Challenge)
		}
		if m := r.MethodList[1]; m.ID != mail.ID || m.Hint != mail.Hint || m.Expire < 70 || m.Expire > 90 {
			t.Errorf("%+v, want about 90 s left", m)
		}
		n.Renew(t, f, sms).Is(t, 409, "RENEW_CLOSED")
		fresh := n.Code(t, demo, "SMS")
		if fresh != old {
			blackbox.AttemptsLeft(t, n.Complete(t, f, sms, old))
		}
		n.Complete(t, f, sms, fresh).Is(t, 200, "")
		if r := renew(mail); len(r.MethodList) != 1 || r.MethodList[0].ID != mail.ID {
			t.Errorf("methods %+v, want the one that is not completed", r.MethodList)
		}
	})
}

// Methods and challenges expire on time, even without a request (D-2FA-05, D-2FA-15, D-SOCK-06).
func TestChallengesExpireWithoutRequests(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("MFA_CHALLENGE_TTL=1s", "MFA_P_AUTH_GRACE=2s")
		n := s.Start()
		boss, demo := blackbox.Admin(t, s, n), s.Seeded("user")
		blackbox.Tune(t, n, boss, "SMS", 1_000, 0)
		blackbox.Tune(t, n, boss, "MAIL", 2_000, 0)

		f, done := n.Login(t, demo), blackbox.Flow{}
		sms, mail := f.Method(t, "SMS"), f.Method(t, "MAIL")
		if f.Expire != 2 || sms.Expire != 1 || mail.Expire != 2 {
			t.Fatalf("%+v, want a challenge of two seconds with a method of one", f.Challenge)
		}
		smsCode, mailCode := n.Code(t, demo, "SMS"), n.Code(t, demo, "MAIL")
		socket, poll := n.Socket(t, f), blackbox.LongPoll(n, f)

		done = n.Login(t, demo)
		final := n.Complete(t, done, done.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		stays := n.Socket(t, done)
		stays.Expect(done, "LOGIN", "METHOD_COMPLETE")
		stays.Expect(done, "LOGIN", "ACTION_COMPLETE")

		time.Sleep(time.Until(time.UnixMilli(f.TS + 1_020)))
		n.Complete(t, f, sms, smsCode).Is(t, 410, "METHOD_EXPIRED")
		n.Complete(t, f, sms, blackbox.WrongFor(smsCode)).Is(t, 410, "METHOD_EXPIRED")

		end := time.UnixMilli(f.TS + 2_000)
		socket.ExpectClose(4410, blackbox.Within(5))
		if late := time.Since(end); late < 0 || late > blackbox.Within(1) {
			t.Errorf("the socket was closed %v after the end of the challenge", late)
		}
		if p := <-poll; p.Err != nil || p.Code() != "CHALLENGE_EXPIRED" || p.At.Sub(end) > blackbox.Within(1) {
			t.Errorf("the long poll ended with %s, %v after the end of the challenge: %v", p.Answer, p.At.Sub(end), p.Err)
		}
		n.Complete(t, f, mail, mailCode).Is(t, 410, "CHALLENGE_EXPIRED")
		n.Complete(t, f, sms, smsCode).Is(t, 410, "CHALLENGE_EXPIRED")
		n.Renew(t, f, sms).Is(t, 410, "CHALLENGE_EXPIRED")
		n.Result(t, f).Is(t, 410, "CHALLENGE_EXPIRED")
		n.Socket(t, f).ExpectClose(4410, blackbox.Within(5))

		// The outcome of a completed challenge can be read until p-auth expires.
		blackbox.SameOutcome(t, final, n.Result(t, done))
		expires := time.Unix(int64(blackbox.ClaimsOf(t, done.PAuth)["exp"].(float64)), 0)
		stays.ExpectClose(4401, blackbox.Within(10))
		if late := time.Since(expires); late < 0 || late > blackbox.Within(1) {
			t.Errorf("the socket was closed %v after the end of p-auth", late)
		}
		n.Result(t, done).Is(t, 401, "TOKEN_EXPIRED")
		n.Complete(t, f, mail, mailCode).Is(t, 401, "TOKEN_EXPIRED")
		n.Renew(t, f, sms).Is(t, 401, "TOKEN_EXPIRED")
		if _, err := n.TrySocket(done, blackbox.InHeader); err == nil {
			t.Error("a socket was opened with a token that has ended")
		}
	})
}

// A value, a method and a token of different challenges change nothing (SEC-10, D-2FA-07, D-2FA-30, D-2FA-33).
func TestMismatchedTokenMethodAndCodeAreRefused(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		a := n.Login(t, demo)
		codeOfA := n.Code(t, demo, "SMS")
		b := n.Login(t, demo)
		sms := a.Method(t, "SMS")
		complete := func(token string, body any) blackbox.Answer {
			t.Helper()
			return n.Do(t, "POST", blackbox.CompletePath, body, blackbox.Headers{"p-auth": token})
		}
		field := func(a blackbox.Answer, want string) {
			t.Helper()
			storetest.Equal(t, a.Is(t, 400, "INVALID_FIELD").Problem().Field, want, "field of", a)
		}
		body := func(more ...string) map[string]any {
			m := map[string]any{"methodId": sms.ID, "method": "SMS", "value": codeOfA}
			for i := 0; i < len(more); i += 2 {
				m[more[i]] = more[i+1]
			}
			return m
		}
		complete(b.PAuth, body()).Is(t, 404, "METHOD_NOT_FOUND")
		complete(a.PAuth, body("methodId", a.ChallengeID)).Is(t, 404, "METHOD_NOT_FOUND")
		field(complete(a.PAuth, body("method", "MAIL")), "method")
		field(complete(a.PAuth, body("method", "sms")), "method")
		field(complete(a.PAuth, body("challengeId", b.ChallengeID)), "challengeId")
		field(complete(a.PAuth, body("method", "PUSH")), "value")
		field(complete(a.PAuth, `{"methodId":"`+sms.ID+`","method":"SMS","value":`+strconv.Itoa(123456)+`}`), "value")
		field(complete(a.PAuth, body("value", " ")), "value")
		complete("", body()).Is(t, 401, "UNAUTHENTICATED")
		complete("", body("challengeId", a.ChallengeID, "deviceId", "d")).Is(t, 401, "UNAUTHENTICATED")
		push := body("challengeId", a.ChallengeID, "method", "PUSH", "value", "APPROVED", "deviceId", "d")
		n.Do(t, "POST", blackbox.CompletePath, push, blackbox.Headers{"device-signature": "x.y.z"}).
			Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		n.Do(t, "POST", blackbox.CompletePath, body("challengeId", a.ChallengeID),
			blackbox.Headers{"device-signature": "x.y.z"}).
			Is(t, 401, "UNAUTHENTICATED")

		// A code of one challenge or method is wrong for another.
		codeOfB, mailOfB := n.Code(t, demo, "SMS"), n.Code(t, demo, "MAIL")
		if codeOfA != codeOfB && codeOfB != mailOfB {
			blackbox.AttemptsLeft(t, n.Complete(t, b, b.Method(t, "SMS"), codeOfA))
			blackbox.AttemptsLeft(t, n.Complete(t, b, b.Method(t, "MAIL"), codeOfB))
		}
		for _, odd := range []string{"１２３４５６", codeOfA + "0", codeOfA[:5], "x"} {
			if got := complete(a.PAuth, body("value", odd)); got.Status == 200 {
				t.Errorf("%q was taken for %s", odd, codeOfA)
			}
		}
		n.Result(t, a).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
		complete(a.PAuth, body("challengeId", a.ChallengeID, "value", codeOfA[:3]+" "+codeOfA[3:])).Is(t, 200, "")
	})
}

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
		storetest.Same(t, got, map[string]int{"200": 1, "409METHOD_ALREADY_COMPLETED": parallel - 1})
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		blackbox.CheckFinal(t, f, n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, who, "MAIL")).Is(t, 200, ""))
		socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
		socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
	})
}

// frames reads the two messages of a login that one method completed.
func frames(t *testing.T, socket *blackbox.Socket, f blackbox.Flow, token string, m blackbox.Method) {
	t.Helper()
	done := socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
	storetest.Equal(t, string(done), `{"methodId":"`+m.ID+`","method":"`+m.Name+`"}`, "METHOD_COMPLETE")
	var action struct {
		Success bool
		Data    map[string]string
		Headers map[string]string
	}
	outcome := socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
	storetest.Must(t, json.Unmarshal(outcome, &action))
	storetest.Same(t, slices.Sorted(maps.Keys(blackbox.Keys(t, outcome))), []string{"data", "headers", "success"})
	if !action.Success || len(action.Data) != 1 || action.Data["sessionKey"] != blackbox.ClaimsOf(t, token)["sid"] ||
		len(action.Headers) != 1 || action.Headers["x-auth"] != token {
		t.Errorf("ACTION_COMPLETE of %s, want the outcome with x-auth %s", outcome, token)
	}
}
