package main

import (
	"encoding/base32"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"castellan/domain/totp"
	"castellan/internal/blackbox"
)

// totpOutcome is the last answer of an authenticator's setup.
type totpOutcome struct {
	Action     string
	ExecResult struct {
		Success bool
		Data    struct {
			Base32        string   `json:"base32"`
			URL           string   `json:"otpAuthUrl"`
			QR            string   `json:"qrDataUrl"`
			Recovery      []string `json:"recoveryCodes"`
			SnakeURL      string   `json:"otp_auth_url"`
			SnakeQR       string   `json:"qr_data_url"`
			SnakeRecovery []string `json:"recovery_codes"`
		}
	}
}

// authenticator is the app: the codes of a secret from now on, each once.
type authenticator struct {
	secret []byte
	last   int64
}

func newAuthenticator(t *testing.T, text string) *authenticator {
	t.Helper()
	secret, err := base32.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return &authenticator{secret: secret}
}

// enrolled gives an account an authenticator.
func enrolled(t *testing.T, n *blackbox.Node, who blackbox.Account, session blackbox.Headers) *authenticator {
	t.Helper()
	f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, session))
	final := n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, who, "SMS")).Is(t, 200, "")
	var set totpOutcome
	if err := json.Unmarshal(final.Body, &set); err != nil || !set.ExecResult.Success {
		t.Fatalf("the setup answered %s", final)
	}
	return newAuthenticator(t, set.ExecResult.Data.Base32)
}

// next is a code that is right now and was not used; it waits for one only when
// all three of the window are used up.
func (a *authenticator) next(t *testing.T) string {
	t.Helper()
	if a.last == 0 {
		a.last = totp.StepAt(time.Now()) - 1 // the present one comes first
	}
	a.last++
	for totp.StepAt(time.Now())+1 < a.last {
		time.Sleep(100 * time.Millisecond)
	}
	return totp.CodeAt(a.secret, a.last)
}

// Section 3.2 from outside: set up, log in with it, recover, and out again.
func TestAuthenticator(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		n.Do(t, "POST", "/auth/totp/deactivate", nil, me).Is(t, 409, "TOTP_NOT_DEFINED")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, me))
		code := n.Code(t, demo, "SMS")
		final := n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 200, "")
		var set totpOutcome
		final.Read(t, &set)
		d := set.ExecResult.Data
		if set.Action != "TOTP_SETUP" || !set.ExecResult.Success || len(d.Recovery) != 5 || d.Base32 == "" ||
			d.URL != d.SnakeURL ||
			d.QR != d.SnakeQR ||
			len(d.SnakeRecovery) != 5 {
			t.Fatalf("the setup answered %s", final)
		}
		sameOutcome(t, final, n.Result(t, f))
		sameOutcome(t, final, n.Complete(t, f, f.Method(t, "SMS"), code))
		n.Do(t, "POST", "/auth/totp/setup", nil, me).Is(t, 409, "TOTP_ALREADY_DEFINED")
		phone := newAuthenticator(t, d.Base32)

		// One code at once over as many logins as may be open opens one; the
		// method lives as long as its challenge.
		var flows []blackbox.Flow
		for range 5 {
			flows = append(flows, n.Login(t, demo))
		}
		if m := flows[0].MethodList[0]; m.Name != "TOTP" || m.Expire != flows[0].Expire || m.RenewStart != 0 || m.Hint != "" {
			t.Errorf("method %+v", m)
		}
		code = phone.next(t)
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
		sameOutcome(t, answers[opened], n.Complete(t, flows[opened], flows[opened].Method(t, "TOTP"), code))
		n.Kill() // what was used stays used

		n = s.Start()
		f = n.Login(t, demo)
		n.Complete(t, f, f.Method(t, "TOTP"), code).Is(t, 422, "OTP_INVALID")
		n.Complete(t, f, f.Method(t, "TOTP"), phone.next(t)).Is(t, 200, "")

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
