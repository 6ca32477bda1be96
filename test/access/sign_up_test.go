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

// A service client imports users, follows the job and reads an account. The first login of such a user is a
// password reset (D-INT-07).
func TestServiceClientImportsUsers(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		got := s.Command("", "service-key", "add", "--name", "crm", "--role", "admin")
		key := blackbox.Headers{"service-auth": strings.TrimPrefix(strings.TrimSpace(got.Out), "key: ")}
		blackbox.Until(t, blackbox.Within(10), "the key is known", func() bool {
			a, err := n.Try("GET", "/integration/events", nil, key)
			return err == nil && a.Status == 200
		})
		a := blackbox.NewAccount(78)
		newcomer := map[string]any{"externalId": "crm-1", "countryCode": a.Country, "phoneNumber": a.Phone, "email": a.Mail,
			"name": "Ege"}
		var made struct{ Data struct{ ID, JobID string } }
		n.Ok(t, "POST", "/integration/users", newcomer, key).Read(t, &made)
		id := made.Data.ID
		n.Ok(t, "POST", "/integration/users/bulk", map[string]any{"users": []any{newcomer,
			map[string]any{"externalId": "crm-2", "countryCode": a.Country, "phoneNumber": a.Phone, "name": "Twin"}}},
			key).Read(t, &made)
		var j struct {
			Status       string
			Done, Failed int
			Failures     []struct {
				Reason string
				First  []string
			}
		}
		blackbox.Until(t, blackbox.Within(20), "the job is over", func() bool {
			n.Ok(t, "GET", "/admin/jobs/"+made.Data.JobID, nil, key).Read(t, &j)
			return j.Status == "done"
		})
		if j.Done != 1 || j.Failed != 1 || len(j.Failures) != 1 || j.Failures[0].Reason != "RECORD_ALREADY_EXIST" ||
			strings.Join(j.Failures[0].First, " ") != "crm-2" {
			t.Errorf("the job %+v", j)
		}
		n.Ok(t, "GET", "/integration/users/"+id, nil, key)
		rows := s.Count("audit WHERE action = 'USER_ADD' AND actor_id = 'service:crm' AND target = '" + id + "'")
		if rows != 1 {
			t.Errorf("%d audit rows of the account", rows)
		}

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
