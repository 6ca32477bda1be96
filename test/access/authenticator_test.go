package access

import (
	"sync"
	"testing"

	"castellan/internal/blackbox"
	"castellan/test/harness"
)

// Section 3.2 of the interface from outside: set up an authenticator, log in with it, recover access, and
// remove it.
func TestAuthenticatorSetupLoginAndRemoval(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		n.Do(t, "POST", "/auth/totp/deactivate", nil, me).Is(t, 409, "TOTP_NOT_DEFINED")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, me))
		code := n.Code(t, demo, "SMS")
		final := n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 200, "")
		var set harness.TOTPOutcome
		final.Read(t, &set)
		d := set.ExecResult.Data
		if set.Action != "TOTP_SETUP" || !set.ExecResult.Success || len(d.Recovery) != 5 || d.Base32 == "" ||
			d.URL != d.SnakeURL ||
			d.QR != d.SnakeQR ||
			len(d.SnakeRecovery) != 5 {
			t.Fatalf("the setup answered %s", final)
		}
		harness.SameOutcome(t, final, n.Result(t, f))
		harness.SameOutcome(t, final, n.Complete(t, f, f.Method(t, "SMS"), code))
		n.Do(t, "POST", "/auth/totp/setup", nil, me).Is(t, 409, "TOTP_ALREADY_DEFINED")
		phone := harness.NewAuthenticator(t, d.Base32)

		// The same code in all open logins at once completes one login. The method expires with its challenge.
		var flows []blackbox.Flow
		for range 5 {
			flows = append(flows, n.Login(t, demo))
		}
		if m := flows[0].MethodList[0]; m.Name != "TOTP" || m.Expire != flows[0].Expire || m.RenewStart != 0 || m.Hint != "" {
			t.Errorf("method %+v", m)
		}
		code = phone.Next(t)
		answers := make([]blackbox.Answer, len(flows))
		var wg sync.WaitGroup
		for i, f := range flows {
			m := f.Method(t, "TOTP")
			wg.Go(func() {
				a, err := n.TryComplete(f, m, code)
				if err != nil {
					t.Error(err)
				}
				answers[i] = a
			})
		}
		wg.Wait()
		opened := -1
		for i, a := range answers {
			if a.Status == 200 {
				if opened >= 0 {
					t.Errorf("one code opened two: %s", a)
				}
				opened = i
			} else {
				a.Is(t, 422, "OTP_INVALID")
			}
		}
		if opened < 0 {
			t.Fatalf("none was opened: %v", answers)
		}
		harness.SameOutcome(t, answers[opened], n.Complete(t, flows[opened], flows[opened].Method(t, "TOTP"), code))
		n.Kill() // a used code stays used

		n = s.Start()
		f = n.Login(t, demo)
		n.Complete(t, f, f.Method(t, "TOTP"), code).Is(t, 422, "OTP_INVALID")
		n.Complete(t, f, f.Method(t, "TOTP"), phone.Next(t)).Is(t, 200, "")

		var got map[string]string
		n.Do(t, "POST", "/auth/totp/recover", map[string]string{"recovery_code": d.Recovery[1]}, me).Is(t, 200, "").
			Keys(t, "base32", "otpAuthUrl", "qrDataUrl", "otp_auth_url", "qr_data_url").Read(t, &got)
		if got["base32"] != d.Base32 || got["otpAuthUrl"] != d.URL || got["qrDataUrl"] != d.QR {
			t.Errorf("recovered %v", got)
		}
		n.Do(t, "POST", "/auth/totp/recover", map[string]string{"recoveryCode": d.Recovery[1]}, me).
			Is(t, 422, "RECOVERY_CODE_INVALID")
		if l := n.Letters(t, demo.Mail)[0]; l.Channel != "MAIL" || l.Code != "" || l.Subject == "" {
			t.Errorf("the last letter is %+v, want the notice", l)
		}

		f = blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/deactivate", nil, me))
		out := blackbox.ReadFinal(t, n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 200, ""))
		if out.Action != "TOTP_DEACTIVATE" || !out.ExecResult.Success || out.ExecResult.Data != nil {
			t.Errorf("the deactivation answered %+v", out)
		}
		n.Do(t, "POST", "/auth/totp/recover", map[string]string{"recoveryCode": d.Recovery[0]}, me).
			Is(t, 409, "TOTP_NOT_DEFINED")
		for _, m := range n.Login(t, demo).MethodList {
			if m.Name == "TOTP" {
				t.Error("a login still offers TOTP")
			}
		}
	})
}
