package access

import (
	"testing"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// The Go client has itself remembered, and gets its next session without a code.
func TestGoClientIsRemembered(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		boss := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, boss, "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
		blackbox.Until(t, blackbox.Within(5), "the policy takes effect", func() bool {
			var x struct{ RememberDays int }
			n.Ok(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, boss).Read(t, &x)
			return x.RememberDays == 7
		})
		c := storetest.Value(client.New(n.URL))(t)
		c.Key = client.NewKey(blackbox.ECKey(t))
		who := client.Credentials{Email: demo.Mail, Password: demo.Password}
		f, err := c.Login(t.Context(), who)
		if err != nil || f.Completed || f.RememberDays != 7 {
			t.Fatalf("%+v, %v", f, err)
		}
		m, _ := f.Method("SMS")
		if o, err := f.CompleteAndRemember(t.Context(), m, n.Code(t, demo, "SMS")); err != nil || !o.Success {
			t.Fatalf("%+v, %v", o, err)
		}
		if f, err = c.Login(t.Context(), who); err != nil || !f.Completed || !f.Methods[0].Completed {
			t.Fatalf("%+v, %v", f, err)
		}
		if o, err := f.Wait(t.Context()); err != nil || o.XAuth == "" {
			t.Errorf("%+v, %v", o, err)
		}
	})
}
