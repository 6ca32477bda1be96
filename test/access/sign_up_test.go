package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// A user signs up, is logged in at once, and can log in with the password after a kill (D-INT-07). A second
// sign-up with the same details gets no code.
func TestSignUpLogsInAtOnce(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		a := blackbox.NewAccount(77)
		body := n.SignUpBody(t, a)
		body["phoneNumber"], body["email"] = "0"+a.Phone, strings.ToUpper(a.Mail)
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
		if hits := blackbox.Find(s.AtRest(), a.Password); len(hits) > 0 {
			t.Errorf("the password is kept in %v", hits)
		}
		before := len(n.Letters(t, a.Number()))
		blackbox.FlowOf(t, n.Do(t, "POST", "/auth/register", body, nil))
		if got := len(n.Letters(t, a.Number())); got != before {
			t.Errorf("%d messages to a number that has an account, before %d", got, before)
		}
	})
}

// A service client adds a user and reads the account. The first login of such a user is a password reset (D-INT-07).
func TestServiceClientAddsUser(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		key := s.ServiceKey("crm", "--role", "admin")
		blackbox.Until(t, blackbox.Within(10), "the key is known", func() bool {
			a, err := n.Try("GET", "/integration/events", nil, key)
			return err == nil && a.Status == 200
		})
		a := blackbox.NewAccount(78)
		newcomer := map[string]any{"externalId": "crm-1", "countryCode": a.Country, "phoneNumber": a.Phone, "email": a.Mail,
			"name": "Ege"}
		var made struct{ Data struct{ ID string } }
		n.Ok(t, "POST", "/integration/users", newcomer, key).Read(t, &made)
		id := made.Data.ID
		n.Ok(t, "GET", "/integration/users/"+id, nil, key)
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), nil).Is(t, 401, "INVALID_CREDENTIALS")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password/reset",
			map[string]string{"countryCode": a.Country, "phoneNumber": a.Phone}, nil))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, "")
		final := n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, a, "MAIL")).Is(t, 200, "")
		n.Do(t, "POST", "/auth/password/update", map[string]string{"password": a.Password, "passwordVerify": a.Password},
			blackbox.Headers{"ot-auth": final.Header.Get("ot-auth")}).Is(t, 200, "")
		if xauth, _ := n.Session(t, a); xauth == "" {
			t.Error("no login with the first password")
		}
	})
}
