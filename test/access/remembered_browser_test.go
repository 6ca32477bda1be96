package access

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
	"castellan/internal/blackbox"
)

const rememberedPath = "/auth/remembered"

	t.Helper()
	n.Ok(t, "GET", rememberedPath, nil, blackbox.Headers{"x-auth": token}).Read(t, &all)
	return all
}

// until waits for a policy on this node.
func (b browser) until(t testing.TB, n *blackbox.Node, who blackbox.Headers, days int) {
	t.Helper()
	blackbox.Until(t, blackbox.Within(5), "the policy takes effect", func() bool {
		var x struct{ RememberDays int }
		n.Ok(t, "POST", "/admin/system/mfa/explain", `{"actionCode":"LOGIN"}`, who).Read(t, &x)
		return x.RememberDays == days
	})
}

// The Go client has itself remembered, and gets its next session without a code.
func TestGoClientIsRemembered(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		boss := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, boss, "LOGIN", 1, `[["SMS"]]`, `,"remember":7`)
		(browser{}).until(t, n, boss, 7)
		c, err := client.New(n.URL)
		if err != nil {
			t.Fatal(err)
		}
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
