package office

import (
	"strings"
	"testing"

	"castellan/client"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Operators add applications of companies, and each is audited (section 4.20 of the interface).
func TestCorporateApplications(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		for out, args := range map[string][]string{"1\n": {"Acme A.Ş.", "1234567890", "--status", "APPROVED"},
			"": {" ", "1"}} {
			got := s.Command("", append([]string{"corporate", "add"}, args...)...)
			if got.Out != out || (got.Code == 0) != (out != "") {
				t.Errorf("corporate add %q: exit %d, %s%s", args, got.Code, got.Out, got.ErrOut)
			}
		}
		for _, clause := range []string{"corporate_application WHERE status = 'APPROVED' AND tax_number = '1234567890'",
			"audit WHERE action = 'CORPORATE_APPLICATION_ADD' AND actor_id = 'operator' AND target = '1'"} {
			if n := s.Count(clause); n != 1 {
				t.Errorf("%d rows in %s", n, clause)
			}
		}
	})
}

// An account for a company's user cannot be used until an administrator enters its owner's contact data and
// the owner resets the password. No message goes to its placeholder (D-COR-02, D-COR-03).
func TestCompanyAccountWaitsForOwner(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		ctx, n := t.Context(), s.Start("CORPORATE_DEFAULT_PASSWORD=the first password")
		c, err := client.New(n.URL)
		storetest.Must(t, err)
		c.Token, _ = n.Session(t, s.Seeded("admin"))
		call := func(path string, in, out any) {
			t.Helper()
			storetest.Must(t, c.Call(ctx, "POST", path, in, out))
		}
		var made struct{ ID, Message *string }
		call("/admin/insert-corporate-user", map[string]string{"corporateUserId": "acme", "status": "active", "role": "owner",
			"countryCode": "90", "phoneNumber": "5321234567", "email": "ann@acme.test"}, &made)
		var linked []struct{ UserID string }
		storetest.Must(t, c.Call(ctx, "GET", "/admin/get-corporate-users?corporateUserId=acme", nil, &linked))
		if made.ID == nil || made.Message != nil || len(linked) != 1 {
			t.Fatalf("made %+v, linked %+v", made, linked)
		}
		id := linked[0].UserID
		refused := func(who client.Credentials) {
			t.Helper()
			if _, err := c.Login(ctx, who); client.CodeOf(err) != "INVALID_CREDENTIALS" {
				t.Errorf("%+v: %v", who, err)
			}
		}
		refused(client.Credentials{CountryCode: "90", PhoneNumber: "00000000001", Password: "the first password"})
		call("/send-bulk-sms", map[string]any{"userIds": []string{id}, "messageBody": "hello"}, nil)
		call("/admin/user/update-email", map[string]string{"userId": id, "mailAddress": "ann@acme.test"}, nil)
		refused(client.Credentials{Email: "ann@acme.test", Password: "the first password"})
		call("/admin/user/update-phonenumber", map[string]string{"userId": id, "countryCode": "90", "phoneNum": "5329990001"},
			nil)
		ann := blackbox.Account{Country: "90", Phone: "5329990001", Mail: "ann@acme.test", Password: "the first password"}
		refused(client.Credentials{Email: ann.Mail, Password: ann.Password})

		f, err := c.Start(ctx, "POST", "/auth/password/reset", map[string]string{"countryCode": ann.Country,
			"phoneNumber": ann.Phone})
		storetest.Must(t, err)
		var o client.Outcome
		for _, m := range f.Methods {
			o, err = f.Complete(ctx, m, n.Code(t, ann, m.Name))
			storetest.Must(t, err)
		}
		ann.Password = "tall-lantern-orchard"
		storetest.Must(t, c.Call(ctx, "POST", "/auth/password/update", map[string]string{"password": ann.Password,
			"passwordVerify": ann.Password}, nil, client.Header("ot-auth", o.OTAuth)))
		if x, _ := n.Session(t, ann); x == "" {
			t.Error("the owner does not get in")
		}
		for _, l := range n.Letters(t, "") {
			if strings.HasPrefix(l.To, "+900") {
				t.Errorf("sent to the placeholder: %+v", l)
			}
		}
	})
}
