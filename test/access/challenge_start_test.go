package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// Actions without an endpoint of their own (D-2FA-27, REQ-2FA-12). A code that is sent to the account's
// address marks the address verified. A video call requires the methods of its policy.
func TestActionsWithoutEndpoint(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("MFA_GUARDED=" + blackbox.GuardedKey + "=DURING_VIDEO_KYC")
		boss, me := s.Seeded("admin"), s.AddUser("user")
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
			map[string]any{"actionCode": "TOTP_SETUP"}} {
			if p := n.Do(t, "POST", blackbox.StartPath, body, x).Is(t, 400, "INVALID_FIELD").Problem(); p.Field != "actionCode" {
				t.Errorf("%v: field %q", body, p.Field)
			}
		}

		f := start("VERIFY_EMAIL")
		if len(f.MethodList) != 1 || f.MethodList[0].Name != "MAIL" || verified() {
			t.Fatalf("methods %+v, want MAIL alone; verified already: %v", f.MethodList, verified())
		}
		mail, code := f.MethodList[0], n.Code(t, me, "MAIL")
		n.Complete(t, f, mail, blackbox.WrongFor(code)).Is(t, 422, "OTP_INVALID")
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

		s.Exec("UPDATE users SET email = NULL, cv = cv + 1 WHERE id = $1", me.ID)
		n.Do(t, "POST", blackbox.StartPath, map[string]string{"actionCode": "VERIFY_EMAIL"}, x).Is(t, 409,
			"MFA_NOT_AVAILABLE")
		s.Exec("UPDATE users SET email = $1, email_verified = FALSE, cv = cv + 1 WHERE id = $2", me.Mail, me.ID)

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
		for _, action := range []string{"VERIFY_EMAIL", "DURING_VIDEO_KYC"} {
			if s.Count("audit WHERE action = $1 AND user_id = $2 AND outcome = 'success'", action, me.ID) != 1 {
				t.Errorf("no audit row of %s", action)
			}
		}

		// The action may also guard an endpoint (D-2FA-28). Each start has its own effect.
		if rows := s.Count("mfa_action WHERE code = 'BY_VIDEO'"); rows != 0 {
			t.Errorf("%d rows of an endpoint that was not called", rows)
		}
		f = blackbox.FlowOf(t, n.Do(t, "POST", blackbox.ActionsPath, blackbox.NewAction("BY_VIDEO"), blackbox.Admin(t, s, n)))
		out := blackbox.ReadFinal(t, n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, ""))
		if out.Action != "DURING_VIDEO_KYC" || !out.ExecResult.Success || out.ExecResult.Data["actionCode"] != "BY_VIDEO" {
			t.Errorf("the endpoint's outcome is %+v", out)
		}
	})
}

// The profile of the caller (REQ-USR-02, REQ-USR-07, REQ-TOTP-14): its two fields are current at every
// request, also after a change by the command line.
func TestUserProfileIsCurrent(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me := s.AddUser("user")
		token, _ := n.Session(t, me)
		who := blackbox.Headers{"x-auth": token}
		shows := func(totp, prohibited bool) {
			t.Helper()
			var p map[string]bool
			n.Ok(t, "GET", "/user/user-profile", nil, who).Keys(t, "totp", "isWithdrawProhibited").Read(t, &p)
			if p["totp"] != totp || p["isWithdrawProhibited"] != prohibited {
				t.Errorf("the profile is %v, want totp %v and isWithdrawProhibited %v", p, totp, prohibited)
			}
		}
		shows(false, false)
		s.Succeeds("", "user", "withdrawals", me.Mail, "prohibit")
		shows(false, true)
		app := blackbox.Enrolled(t, n, me, who)
		shows(true, true)
		s.Succeeds("", "user", "withdrawals", me.Number(), "allow")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/deactivate", nil, who))
		n.Complete(t, f, f.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
		shows(false, false)
		if got := s.Command("", "user", "withdrawals", "nobody@example.test", "allow"); got.Code != 1 {
			t.Errorf("unknown user: exit %d", got.Code)
		}
		if rows := s.Count("audit WHERE action = 'USER_WITHDRAWALS' AND user_id = $1", me.ID); rows != 2 {
			t.Errorf("%d audit rows of two changes", rows)
		}
	})
}
