package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/device"
	"castellan/internal/blackbox"
)

// SEC-16: a fourth push does not reach somebody who has not answered three, and
// three denials are understood.
func TestPushFatigue(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := enroll(t, n, demo, x, device.ES256, "")
		offered := func(f blackbox.Flow) bool {
			return slices.ContainsFunc(f.MethodList, func(m blackbox.Method) bool { return m.Name == "PUSH" })
		}
		var flows []blackbox.Flow
		for i := range 4 {
			f := n.Login(t, demo)
			if offered(f) != (i < 3) {
				t.Errorf("start %d: %+v", i+1, f.MethodList)
			}
			flows = append(flows, f)
		}
		n.Complete(t, flows[3], flows[3].Method(t, "SMS"), n.Code(t, demo, "SMS")).
			Is(t, 200, "")
			// without the push it is as good
		if all := p.list(t); len(all) != 3 {
			t.Errorf("%d wait", len(all))
		}
		n.Kill()
		n = s.Start("HTTP_PUBLIC_URL=" + p.n.URL) // the bound is in the rows
		if f := n.Login(t, demo); offered(f) {
			t.Error("after a restart a fourth push is offered")
		}
		p.n = n
		for _, f := range flows[:3] {
			p.answer(t, f, "DENIED").Is(t, 200, "")
		}
		if all := p.list(t); len(all) != 0 {
			t.Errorf("%d wait", len(all))
		}
		if f := n.Login(t, demo); offered(f) {
			t.Error("a push is offered after three denials")
		}
		// Where the push cannot be left out nothing is lowered: the start has to wait.
		who := admin(t, s, n)
		twoOf(t, n, who, `["PUSH"],["SMS"]`)
		if got := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 429, "RATE_LIMITED"); got.Header.Get(
			"retry-after",
		) == "" {
			t.Errorf("%s: no Retry-After", got)
		}
		s.Exec("UPDATE challenge SET touched_at = touched_at - 3600000 WHERE state = 3") // an hour passes
		if f := n.Login(t, demo); !offered(f) {
			t.Error("no push is offered after the pause")
		}
	})
}

// SEC-16, D-2FA-08: number matching where the policy asks for it, and the other
// code of the method.
func TestNumberMatching(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := enroll(t, n, demo, x, device.ES256, "")
		if m := n.Login(t, demo).Method(t, "PUSH"); m.MatchNumber != "" {
			t.Errorf("without being asked for: %+v", m)
		}
		who := admin(t, s, n)
		n.Ok(t, "POST", "/admin/system/mfa/methods", `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`, who)
		var made struct{ ID int64 }
		n.Ok(
			t,
			"POST",
			"/admin/system/mfa/policies/common",
			`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,`+
				`"numberMatching":true,"methods":[["PUSH_OTP"],["PUSH"],["SMS"]]}`,
			who,
		).Read(t, &made)
		policies := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body)
		if !strings.Contains(policies, `"preffered":1,"numberMatching":true}`) {
			t.Errorf("listed %s", policies)
		}

		f := n.Login(t, demo)
		m := f.Method(t, "PUSH")
		if len(f.MethodList) != 2 || m.Expire != 90 || len(m.MatchNumber) != 2 {
			t.Fatalf("%+v", f.MethodList)
		}
		if all := p.list(t); !all[0].Data.NumberMatching ||
			strings.Contains(string(p.ongoing(t).Body), `"`+m.MatchNumber+`"`) {
			t.Errorf("the device is shown %+v", all)
		}
		right, wrong := "APPROVED:"+m.MatchNumber, "APPROVED:"+blackbox.WrongFor(m.MatchNumber)
		for i, value := range []string{"APPROVED", wrong, wrong} {
			if left := p.answer(t, f, value).Is(t, 422, "OTP_INVALID").Problem().AttemptsLeft; left == nil || *left != 4-i {
				t.Errorf("%s leaves %v", value, left)
			}
		}
		p.answer(t, f, right, func(c *device.Claims) { c.Value = wrong }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.answer(t, f, right+"0").Is(t, 400, "INVALID_FIELD")
		done := p.answer(t, f, right).Is(t, 200, "")
		sameOutcome(t, done, p.answer(t, f, right))
		p.answer(t, f, wrong).Is(t, 409, "METHOD_ALREADY_COMPLETED")

		// Guessing is locked; refusing is not.
		f = n.Login(t, demo)
		wrong = "APPROVED:" + blackbox.WrongFor(f.Method(t, "PUSH").MatchNumber)
		for range 5 {
			p.answer(t, f, wrong).Is(t, 422, "OTP_INVALID")
		}
		p.answer(t, f, "APPROVED:"+f.Method(t, "PUSH").MatchNumber).Is(t, 423, "METHOD_LOCKED")
		p.answer(t, f, "DENIED").Is(t, 200, "")

		// PUSH_OTP is another name of PUSH in requests.
		n.Ok(t, "PATCH", "/admin/system/mfa/policies/common", fmt.Sprintf(`{"id":%d,"numberMatching":false}`, made.ID), who)
		if text := string(n.Ok(t, "GET", "/admin/system/mfa/policies", nil, who).Body); strings.Contains(
			text,
			"numberMatching",
		) {
			t.Errorf("listed %s", text)
		}
		f = n.Login(t, demo)
		body := strings.Replace(
			func() string { b, _ := p.decision(t, f, "APPROVED"); return string(b) }(),
			`"method":"PUSH"`,
			`"method":"PUSH_OTP"`,
			1,
		)
		h := p.sign(
			t,
			"POST",
			blackbox.CompletePath,
			[]byte(body),
			device.Claims{Challenge: f.ChallengeID, MethodID: f.Method(t, "PUSH").ID, Value: "APPROVED"},
		)
		n.Do(t, "POST", blackbox.CompletePath, body, h).Is(t, 200, "")
	})
}
