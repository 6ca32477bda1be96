package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// Actions without an endpoint of their own (D-2FA-27, REQ-2FA-12). A code that is sent to the account's
// address marks the address verified. A video call requires the methods of its policy.
func TestActionsWithoutEndpoint(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, me := blackbox.Admin(t, s, n), s.AddUser("user")
		token, _ := n.Session(t, me)
		x := blackbox.Headers{"x-auth": token}
		verified := func() bool { t.Helper(); return s.Count("users WHERE id = $1 AND email_verified", me.ID) == 1 }
		start := func(action string) blackbox.Flow {
			t.Helper()
			return blackbox.FlowOf(t, n.Do(t, "POST", blackbox.StartPath, map[string]string{"actionCode": action}, x))
		}
		n.Do(t, "POST", blackbox.StartPath, map[string]string{"actionCode": "VERIFY_EMAIL"}, nil).Is(t, 401,
			"UNAUTHENTICATED")
		for _, body := range []any{map[string]any{}, map[string]any{"actionCode": "LOGIN"},
			map[string]any{"actionCode": "verify_email"}, map[string]any{"actionCode": 5},
			map[string]any{"actionCode": "TOTP_SETUP"}, map[string]any{"actionCode": nil}} {
			if p := n.Do(t, "POST", blackbox.StartPath, body, x).Is(t, 400, "INVALID_FIELD").Problem(); p.Field != "actionCode" {
				t.Errorf("%v: field %q", body, p.Field)
			}
		}

		f := start("VERIFY_EMAIL")
		if len(f.MethodList) != 1 || f.MethodList[0].Name != "MAIL" || verified() {
			t.Fatalf("methods %+v, want MAIL alone; verified already: %v", f.MethodList, verified())
		}
		mail, code := f.MethodList[0], n.Code(t, me, "MAIL")
		wrong := "000000"
		if code == wrong {
			wrong = "111111"
		}
		n.Complete(t, f, mail, wrong).Is(t, 422, "OTP_INVALID")
		if verified() {
			t.Fatal("a wrong code verified the address")
		}
		final := n.Complete(t, f, mail, code).Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		if out := blackbox.ReadFinal(t, final); out.Action != "VERIFY_EMAIL" || !out.ExecResult.Success ||
			out.ExecResult.Data != nil {
			t.Errorf("the outcome is %s", final)
		}
		blackbox.SameOutcome(t, final, n.Result(t, f))
		if !verified() || s.Count("users WHERE email_verified") != 3 { // and the two of development mode
			t.Error("the address, and that alone, is not verified")
		}
		start("VERIFY_EMAIL") // a second time is no error

		// The address changed after the start, so the code does not verify the new one.
		s.Exec("UPDATE users SET email_verified = FALSE WHERE id = $1", me.ID)
		f = start("VERIFY_EMAIL")
		code = n.Code(t, me, "MAIL")
		s.Exec("UPDATE users SET email = 'other@example.test', cv = cv + 1 WHERE id = $1", me.ID)
		n.Complete(t, f, f.MethodList[0], code).Is(t, 409, "CHALLENGE_CLOSED")
		if verified() {
			t.Error("a code of one address verified another")
		}
		s.Exec("UPDATE users SET email = NULL, cv = cv + 1 WHERE id = $1", me.ID)
		n.Do(t, "POST", blackbox.StartPath, map[string]string{"actionCode": "VERIFY_EMAIL"}, x).Is(t, 409,
			"MFA_NOT_AVAILABLE")
		s.Exec("UPDATE users SET email = $1, cv = cv + 1 WHERE id = $2", me.Mail, me.ID)

		f = start("DURING_VIDEO_KYC")
		if len(f.MethodList) != 2 {
			t.Errorf("methods %+v, want SMS and MAIL", f.MethodList)
		}
		final = n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, me, "SMS")).
			Is(t, 200, "").
			Keys(t, "action", "execResult", "challengeId")
		if out := blackbox.ReadFinal(t, final); out.Action != "DURING_VIDEO_KYC" || !out.ExecResult.Success ||
			out.ExecResult.Data != nil {
			t.Errorf("the outcome is %s", final)
		}
		if verified() {
			t.Error("a video check verified the address")
		}
		n.Ok(
			t,
			"POST",
			"/admin/system/mfa/policies/common",
			map[string]any{"actionCode": "DURING_VIDEO_KYC", "name": "video", "entityType": "GENERAL", "expireAt": 0,
				"methods": [][]string{{"MAIL"}}, "required": 1, "preffered": 1},
			boss,
		)
		if f = start("DURING_VIDEO_KYC"); len(f.MethodList) != 1 || f.MethodList[0].Name != "MAIL" {
			t.Errorf("methods %+v, want those of the policy", f.MethodList)
		}
		for _, action := range []string{"VERIFY_EMAIL", "DURING_VIDEO_KYC"} {
			if s.Count("audit WHERE action = $1 AND user_id = $2 AND outcome = 'success'", action, me.ID) != 1 {
				t.Errorf("no audit row of %s", action)
			}
		}
	})
}

// DURING_VIDEO_KYC may also guard an endpoint (D-2FA-28). Each challenge is started in its own way and has its
// own effect.
func TestVideoCheckGuardsEndpoint(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("MFA_GUARDED=" + blackbox.GuardedKey + "=DURING_VIDEO_KYC")
		n := s.Start()
		boss, who := s.Seeded("admin"), blackbox.Admin(t, s, n)
		for name, c := range map[string]struct {
			path string
			body any
			does bool
		}{
			"start":    {blackbox.StartPath, map[string]string{"actionCode": "DURING_VIDEO_KYC"}, false},
			"endpoint": {blackbox.ActionsPath, blackbox.NewAction("BY_VIDEO"), true},
		} {
			f := blackbox.FlowOf(t, n.Do(t, "POST", c.path, c.body, who))
			out := blackbox.ReadFinal(t, n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, ""))
			if out.Action != "DURING_VIDEO_KYC" || !out.ExecResult.Success ||
				(out.ExecResult.Data["actionCode"] == "BY_VIDEO") != c.does {
				t.Errorf("%s: %+v", name, out)
			}
		}
		if rows := s.Count("mfa_action WHERE code = 'BY_VIDEO'"); rows != 1 {
			t.Errorf("%d rows, want the one of the endpoint", rows)
		}
	})
}

// The profile of the caller (REQ-USR-02, REQ-USR-07, REQ-TOTP-14): its two fields are current at every
// request.
func TestUserProfileIsCurrent(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me, other := s.AddUser("user"), s.AddUser("user")
		token, _ := n.Session(t, me)
		second, _ := n.Session(t, other)
		const path = "/user/user-profile"
		n.Do(t, "GET", path, nil, nil).Is(t, 401, "UNAUTHENTICATED")
		n.Do(t, "GET", path, nil, blackbox.Headers{"x-auth": token, "tenant-id": "another"}).Is(t, 403, "TENANT_MISMATCH")
		shows := func(token string, totp, prohibited bool) {
			t.Helper()
			var p map[string]bool
			n.Ok(t, "GET", path, nil, blackbox.Headers{"x-auth": token, "tenant-id": "default"}).
				Keys(t, "totp", "isWithdrawProhibited").
				Read(t, &p)
			if p["totp"] != totp || p["isWithdrawProhibited"] != prohibited {
				t.Errorf("the profile is %v, want totp %v and isWithdrawProhibited %v", p, totp, prohibited)
			}
		}
		run := func(args ...string) {
			t.Helper()
			if got := s.Command("", append([]string{"user", "withdrawals"}, args...)...); got.Code != 0 {
				t.Fatalf("user withdrawals %v: exit %d, %s", args, got.Code, got.ErrOut)
			}
		}
		shows(token, false, false)
		run(me.Mail, "prohibit")
		shows(token, false, true)
		shows(second, false, false)
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, blackbox.Headers{"x-auth": token}))
		var set blackbox.TOTPOutcome
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, me, "SMS")).Is(t, 200, "").Read(t, &set)
		shows(token, true, true)
		run(me.Number(), "allow")
		shows(token, true, false)
		f = blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/deactivate", nil, blackbox.Headers{"x-auth": token}))
		n.Complete(t, f, f.Method(t, "TOTP"), blackbox.NewAuthenticator(t, set.ExecResult.Data.Base32).Next(t)).Is(t, 200, "")
		shows(token, false, false)
		if got := s.Command("", "user", "withdrawals", "nobody@example.test", "allow"); got.Code != 1 {
			t.Errorf("unknown user: exit %d", got.Code)
		}
		blackbox.Until(t, blackbox.Within(5), "two audit rows", func() bool {
			return s.Count("audit WHERE action = 'USER_WITHDRAWALS' AND user_id = $1", me.ID) == 2
		})
	})
}
