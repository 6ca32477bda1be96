package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Section 3.2 of the interface from outside: set up an authenticator, log in with it, recover access, and
// remove it.
func TestAuthenticatorSetupLoginAndRemoval(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		n.Do(t, "POST", "/auth/totp/deactivate", nil, me).Is(t, 409, "TOTP_NOT_DEFINED")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/setup", nil, me))
		code := n.Code(t, demo, "SMS")
		final := n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 200, "")
		var set blackbox.TOTPOutcome
		final.Read(t, &set)
		d := set.ExecResult.Data
		if set.Action != "TOTP_SETUP" || !set.ExecResult.Success || len(d.Recovery) != 5 || d.Base32 == "" ||
			d.URL != d.SnakeURL ||
			d.QR != d.SnakeQR ||
			len(d.SnakeRecovery) != 5 {
			t.Fatalf("the setup answered %s", final)
		}
		blackbox.SameOutcome(t, final, n.Result(t, f))
		blackbox.SameOutcome(t, final, n.Complete(t, f, f.Method(t, "SMS"), code))
		n.Do(t, "POST", "/auth/totp/setup", nil, me).Is(t, 409, "TOTP_ALREADY_DEFINED")
		phone := blackbox.NewAuthenticator(t, d.Base32)

		f = n.Login(t, demo)
		if m := f.MethodList[0]; m.Name != "TOTP" || m.Expire != f.Expire || m.RenewStart != 0 || m.Hint != "" {
			t.Errorf("method %+v", m)
		}
		code = phone.Next(t)
		n.Complete(t, f, f.Method(t, "TOTP"), code).Is(t, 200, "")
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

// A passkey that an SMS has registered is not phishing-resistant for a day (D-AUTH-20). Only a passkey, a recovery code
// or an administrator changes the factors of its account.
func TestPasskeyStrength(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		who := blackbox.Admin(t, s, n)
		x, _ := n.Session(t, demo)
		me := blackbox.Headers{"x-auth": x}
		id := blackbox.ClaimsOf(t, x)["sub"].(string)
		s.Exec("UPDATE users SET created_at = created_at - 86400000 WHERE id = '" + id + "'")
		p := blackbox.EnrollPasskey(t, n, demo, x)

		change := policy(t, n, who, "LOGIN", `,"phishingResistant":true`)
		refused := n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 409, "MFA_NOT_AVAILABLE")
		if !strings.Contains(string(refused.Body), "counts for this action before 20") {
			t.Errorf("%s", refused)
		}
		explained := n.Do(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN","userId":"`+id+`"}`, who)
		if got := string(explained.Is(t, 200, "").Body); !strings.Contains(got, `"strongerThanDeviceAdd":[{"policyId"`) ||
			!strings.Contains(got, `"missing":["PUSH"`) {
			t.Errorf("%s", got)
		}
		// Until it has settled, the factors are changed by the policy, and not by the passkey alone.
		early := n.Do(t, "DELETE", blackbox.DevicesPath, map[string]string{"deviceId": p.ID}, me).Is(t, 200, "")
		if blackbox.FlowOf(t, early).Method(t, "SMS"); strings.Contains(string(early.Body), "PUSH") {
			t.Errorf("a removal meanwhile: %s", early)
		}
		s.Exec("UPDATE passkey SET settling_since = settling_since - 86400000")
		p.Approve(t, n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil)).Is(t, 200, "")
		change(`,"phishingResistant":false`)

		phone := blackbox.NewPocket(t, n, device.ES256)
		remove := func(device string, headers blackbox.Headers) blackbox.Answer {
			t.Helper()
			return n.Do(t, "DELETE", blackbox.DevicesPath, map[string]string{"deviceId": device}, headers)
		}
		q := blackbox.Passkey{Authenticator: passkeytest.New(t, "localhost", n.URL), N: n}
		setup := n.Do(t, "POST", "/auth/totp/setup", nil, me)
		for name, started := range map[string]blackbox.Answer{"a device": phone.Register(t, x, ""),
			"a passkey": q.Register(t, x), "a removal": remove(p.ID, me), "an authenticator": setup} {
			f := blackbox.FlowOf(t, started.Is(t, 200, ""))
			if len(f.MethodList) != 1 || f.MethodList[0].Name != "PUSH" || blackbox.RequestOf(t, started) == nil {
				t.Errorf("%s: %s", name, started)
			}
		}
		setup = n.Do(t, "POST", "/auth/totp/setup", nil, me)
		var done struct {
			ExecResult struct {
				Data struct{ RecoveryCodes []string }
			}
		}
		p.Approve(t, setup).Is(t, 200, "").Read(t, &done)
		codes := done.ExecResult.Data.RecoveryCodes

		with := func(code string) blackbox.Headers { return blackbox.Headers{"x-auth": x, "recovery-code": code} }
		add := func(code string) blackbox.Answer {
			t.Helper()
			body := blackbox.Attest(q.Create(t, blackbox.CreationOptions(t, n, x)))
			return n.Do(t, "POST", blackbox.DevicesPath, body, with(code))
		}
		add("abcde-fgh27").Is(t, 422, "RECOVERY_CODE_INVALID")
		f := blackbox.FlowOf(t, add(codes[0]).Is(t, 200, ""))
		q.ID = blackbox.ReadFinal(t, n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")).
			ExecResult.Data["deviceId"]
		remove(p.ID, with(codes[0])).Is(t, 422, "RECOVERY_CODE_INVALID")

		// No passkey counts until the time is over, and the new one cannot remove the old one.
		change(`,"phishingResistant":true,"force":true`)
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), nil).Is(t, 409, "MFA_NOT_AVAILABLE")
		change(`,"phishingResistant":false`)
		started := remove(p.ID, me).Is(t, 200, "")
		options := passkeytest.Read(t, blackbox.RequestOf(t, started))
		if len(options.AllowCredentials) != 1 || options.AllowCredentials[0].ID != passkeytest.Encode(p.Authenticator.ID) {
			t.Errorf("%+v", options)
		}
		flow := blackbox.FlowOf(t, started)
		q.Send(t, flow, "APPROVED", q.Get(t, blackbox.RequestOf(t, started))).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		p.Approve(t, remove(q.ID, me)).Is(t, 200, "")

		// An administrator removes what the owner has lost.
		const security = "/admin/user/security"
		body := func(factor string) json.RawMessage {
			return json.RawMessage(fmt.Sprintf(`{"userId":%q,"factor":%q}`, id, factor))
		}
		n.Do(t, "DELETE", security, body("PASSKEY"), me).Is(t, 403, "FORBIDDEN")
		n.Do(t, "DELETE", security, body("SMS"), who).Is(t, 400, "INVALID_FIELD")
		if got := string(n.Ok(t, "DELETE", security, body("PASSKEY"), who).Body); got != `{"data":{"deleted":1}}` {
			t.Errorf("%s", got)
		}
		n.Do(t, "DELETE", security, body("PASSKEY"), who).Is(t, 404, "RECORD_NOT_FOUND")
		n.Ok(t, "DELETE", security, body("AUTHENTICATOR"), who)
		blackbox.EnrollPasskey(t, n, demo, x)
	})
}
