package main

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// A user signs up, is logged in at once, survives a kill, and logs in again with the password
// (D-INT-07). The same details then get no code.
func TestSignUp(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		var listed struct{ Data []struct{ ID int64 } }
		n.Ok(t, "GET", "/auth/register/contracts", nil, nil).Read(t, &listed)
		var accepted []int64
		for _, c := range listed.Data {
			accepted = append(accepted, c.ID)
		}
		a := blackbox.NewAccount(77)
		body := map[string]any{"countryCode": a.Country, "phoneNumber": "0" + a.Phone, "email": strings.ToUpper(a.Mail),
			"name": "Ece", "password": a.Password, "passwordVerify": a.Password, "contracts": accepted}
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), nil).Is(t, 401, "INVALID_CREDENTIALS")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/register", body, nil))
		socket := n.Socket(t, f)
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, "").Keys(t, "action")
		socket.Expect(f, "REGISTER", "METHOD_COMPLETE")
		n.Kill()

		n = s.Start()
		final := n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, a, "MAIL")).Is(t, 200, "").
			Keys(t, "action", "execResult", "challengeId")
		data := blackbox.ReadFinal(t, final).ExecResult.Data
		xauth := final.Header.Get("x-auth")
		if data["userId"] == "" || data["sessionKey"] == "" || xauth == "" {
			t.Fatalf("the outcome %s with x-auth %q", final, xauth)
		}
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": xauth})
		if again, _ := n.Session(t, a); again == "" {
			t.Error("no login with the password")
		}
		before := len(n.Letters(t, a.Number()))
		blackbox.FlowOf(t, n.Do(t, "POST", "/auth/register", body, nil))
		if got := len(n.Letters(t, a.Number())); got != before {
			t.Errorf("%d messages to a number that has an account, before %d", got, before)
		}
	})
}
