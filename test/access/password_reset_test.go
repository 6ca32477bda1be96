package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// A forgotten password, from the reset to the next login. The outcome is the same by completion, socket and
// result, and after a kill (REQ-PWD-01…05, D-AUTH-10, D-AUTH-11).
func TestPasswordReset(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		xauth, _ := n.Session(t, demo)
		reset := map[string]string{"countryCode": "+" + demo.Country, "phoneNumber": "0" + demo.Phone}
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password/reset", reset, nil))
		socket := n.Socket(t, f)
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "").Keys(t, "action")
		final := n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).
			Is(t, 200, "").
			Keys(t, "action", "execResult", "challengeId")
		once := final.Header.Get("ot-auth")
		if once == "" || n.Result(t, f).Header.Get("ot-auth") != once {
			t.Fatalf("ot-auth %q", once)
		}
		socket.Expect(f, "RESET_PASSWORD", "METHOD_COMPLETE")
		socket.Expect(f, "RESET_PASSWORD", "METHOD_COMPLETE")
		if got, want := string(socket.Expect(f, "RESET_PASSWORD",
			"ACTION_COMPLETE")), `{"success":true,"data":{},"headers":{"ot-auth":"`+once+`"}}`; got != want {
			t.Errorf("the socket tells %s, want %s", got, want)
		}
		n.Kill()

		n = s.Start()
		update := func(secret string) blackbox.Answer {
			t.Helper()
			return n.Do(t, "POST", "/auth/password/update",
				map[string]string{"password": secret, "passwordVerify": secret}, blackbox.Headers{"ot-auth": once})
		}
		update(demo.Password).Is(t, 422, "PASSWORD_REUSED")
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": xauth})
		if a := update("another-lantern-orchard").Is(t, 200, ""); string(a.Body) != `{"success":true}` {
			t.Errorf("%s", a)
		}
		n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": xauth}).Is(t, 401, "TOKEN_REVOKED")
		update("yet-another-lantern").Is(t, 401, "TOKEN_REVOKED")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 401, "INVALID_CREDENTIALS")
		demo.Password = "another-lantern-orchard"
		blackbox.Until(t, blackbox.Within(10), "notified by mail", func() bool {
			for _, l := range n.Letters(t, demo.Mail) {
				if l.Subject == "Your Castellan password was changed" {
					return true
				}
			}
			return false
		})

		// A password change by a logged-in user ends the user's other sessions at once.
		mine, _ := n.Session(t, demo)
		other, _ := n.Session(t, demo)
		body := map[string]string{
			"oldPassword":    demo.Password,
			"password":       "a-third-lantern",
			"passwordVerify": "a-third-lantern",
		}
		f = blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password", body, blackbox.Headers{"x-auth": mine}))
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": other})
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": other}).Is(t, 401, "TOKEN_REVOKED")
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": mine})
		demo.Password = "a-third-lantern"
		n.Login(t, demo)
	})
}
