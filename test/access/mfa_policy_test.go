package access

import (
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// A policy decides which methods are offered, their order, and how many are required. The first completion of
// two does not complete the challenge (REQ-2FA-16, 17, 20).
func TestPolicyOfTwoMethods(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, demo := blackbox.Admin(t, s, n), s.Seeded("user")
		before := n.Login(t, demo)
		beforeCode := n.Code(t, demo, "SMS")

		var made struct{ ID int64 }
		n.Ok(
			t,
			"POST",
			"/admin/system/mfa/policies/common",
			`{"actionCode":"LOGIN","name":"both","expireAt":0,"required":2,`+
				`"methods":[["MAIL","login"],["TOTP"],["SMS","login"]]}`,
			boss,
		).Keys(t, "id").Read(t, &made)
		n.Do(t, "POST", "/admin/system/mfa/policies/common",
			`{"actionCode":"LOGIN","name":"again","expireAt":0,"required":1,"methods":[["SMS"]]}`, boss).
			Is(t, 409, "RECORD_ALREADY_EXIST")

		f := n.Login(t, demo)
		if len(f.MethodList) != 2 || f.MethodList[0].Name != "MAIL" || f.MethodList[1].Name != "SMS" {
			t.Fatalf("methods %+v, want those of the policy that the account owns, in its order", f.MethodList)
		}
		sms, mail := f.Method(t, "SMS"), f.Method(t, "MAIL")
		socket := n.Socket(t, f)
		smsCode := n.Code(t, demo, "SMS")
		first := n.Complete(t, f, sms, smsCode).Is(t, 200, "").Keys(t, "action")
		if string(first.Body) != `{"action":"LOGIN"}` || first.Header.Get("x-auth") != "" {
			t.Errorf("the first of two completions: %s", first)
		}
		n.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
		n.Complete(t, f, sms, smsCode).Is(t, 409, "METHOD_ALREADY_COMPLETED")
		n.Renew(t, f, sms).Is(t, 409, "METHOD_ALREADY_COMPLETED")
		if data := string(socket.Expect(f, "LOGIN", "METHOD_COMPLETE")); data != `{"methodId":"`+sms.ID+`","method":"SMS"}` {
			t.Errorf("METHOD_COMPLETE of %s", data)
		}
		late := n.Socket(t, f)
		late.Expect(f, "LOGIN", "METHOD_COMPLETE")

		// The policy changes meanwhile; a started challenge keeps its own.
		n.Ok(t, "PATCH", "/admin/system/mfa/policies/common",
			map[string]any{"id": made.ID, "required": 1, "methods": [][]string{{"SMS"}}}, boss)
		final := n.Complete(t, f, mail, n.Code(t, demo, "MAIL")).Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		blackbox.CheckFinal(t, f, final)
		for _, listens := range []*blackbox.Socket{socket, late} {
			if data := string(listens.Expect(f, "LOGIN",
				"METHOD_COMPLETE")); data != `{"methodId":"`+mail.ID+`","method":"MAIL"}` {
				t.Errorf("METHOD_COMPLETE of %s", data)
			}
			listens.Expect(f, "LOGIN", "ACTION_COMPLETE")
		}
		replayed := n.Socket(t, f)
		for _, event := range []string{"METHOD_COMPLETE", "METHOD_COMPLETE", "ACTION_COMPLETE"} {
			replayed.Expect(f, "LOGIN", event)
		}
		blackbox.CheckFinal(t, before, n.Complete(t, before, before.Method(t, "SMS"), beforeCode).Is(t, 200, ""))

		if one := n.Login(t, demo); len(one.MethodList) != 1 || one.MethodList[0].Name != "SMS" {
			t.Errorf("methods %+v after the change, want SMS", one.MethodList)
		}
		// Every account would be shut out of the login, its author too.
		var x struct {
			Accounts, Lost int
			You            bool
		}
		n.Ok(t, "POST", "/admin/system/mfa/rehearse",
			`{"actionCode":"LOGIN","name":"x","expireAt":0,"required":2,"methods":[["TOTP"],["SMS"]]}`, boss).Read(t, &x)
		if x.Accounts != 2 || x.Lost != 2 || !x.You {
			t.Errorf("rehearsed %+v", x)
		}
		shuts := map[string]any{"id": made.ID, "methods": [][]string{{"TOTP"}, {"SMS"}}, "required": 2}
		if got := n.Do(t, "PATCH", "/admin/system/mfa/policies/common", shuts, boss).Is(t, 400, "INVALID_FIELD").
			Problem(); got.Field != "force" {
			t.Errorf("refused because of %q", got.Field)
		}
		n.Login(t, demo)
		shuts["force"] = true
		n.Ok(t, "PATCH", "/admin/system/mfa/policies/common", shuts, boss)
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).
			Is(t, 409, "MFA_NOT_AVAILABLE")
			// never fewer than required (D-2FA-11)
		n.Ok(t, "PATCH", "/admin/system/mfa/policies/common",
			map[string]any{"id": made.ID, "expireAt": time.Now().UnixMilli() - 1}, boss)
		if old := n.Login(t, demo); len(old.MethodList) != 2 || old.MethodList[0].Name != "SMS" {
			t.Errorf("methods %+v with an expired policy, want the built-in ones", old.MethodList)
		}
		n.Ok(t, "DELETE", "/admin/system/mfa/policies/common", map[string]any{"id": made.ID}, boss)
		n.Do(t, "DELETE", "/admin/system/mfa/policies/common", map[string]any{"id": made.ID}, boss).
			Is(t, 404, "RECORD_NOT_FOUND")
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", blackbox.PolicyOf("LOGIN"), boss)
		if one := n.Login(t, demo); len(one.MethodList) != 1 {
			t.Errorf("methods %+v of the policy after a deleted one", one.MethodList)
		}
	})
}
