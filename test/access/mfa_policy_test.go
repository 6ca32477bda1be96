package access

import (
	"fmt"
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

		id := blackbox.Policy(t, n, boss, "LOGIN", 2, `[["MAIL","login"],["TOTP"],["SMS","login"]]`, "")
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
		blackbox.ChangePolicy(t, n, boss, id, `,"required":1,"methods":[["SMS"]]`)
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
		blackbox.ChangePolicy(t, n, boss, id, fmt.Sprintf(`,"expireAt":%d`, time.Now().UnixMilli()-1))
		if old := n.Login(t, demo); len(old.MethodList) != 2 || old.MethodList[0].Name != "SMS" {
			t.Errorf("methods %+v with an expired policy, want the built-in ones", old.MethodList)
		}
	})
}
