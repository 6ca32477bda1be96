package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// A support role that may change contact data cannot take over an account that holds more permissions, and
// cannot bypass its own second factor (D-AUTH-03).
func TestSupportCannotTakeOverAdministrator(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := &blackbox.Counter{Node: s.Start("LIMITS_ENABLED=false"), Site: s}
		const closePath = "/admin/user/close-user-authentication"
		support, chief, customer := s.AddUser("user"), s.AddUser("admin"), s.AddUser("user")
		d.Grants(t, support, "POST "+blackbox.PhonePath, "POST "+blackbox.MailPath, "POST "+closePath)
		who := d.Login(t, support)
		phone := func(a blackbox.Account, number string) blackbox.Answer {
			t.Helper()
			return d.Do(t, "POST", blackbox.PhonePath, map[string]string{"userId": a.ID, "phoneNum": number,
				"countryCode": "90"}, who)
		}
		mail := func(a blackbox.Account, address string) blackbox.Answer {
			t.Helper()
			return d.Do(t, "POST", blackbox.MailPath, map[string]string{"userId": a.ID, "mailAddress": address}, who)
		}
		taken := chief
		taken.Phone, taken.Mail = "5559990001", "support@example.test"
		first, second := phone(chief, taken.Phone), mail(chief, taken.Mail)
		if first.Code() != "FORBIDDEN" || second.Code() != "FORBIDDEN" {
			reset := map[string]string{"countryCode": "90", "phoneNumber": taken.Phone}
			f := blackbox.FlowOf(t, d.Do(t, "POST", "/auth/password/reset", reset, nil))
			d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, taken, "SMS"))
			final := d.Complete(t, f, f.Method(t, "MAIL"), d.Code(t, taken, "MAIL"))
			taken.Password = "lantern-of-the-operator"
			d.Do(t, "POST", "/auth/password/update", map[string]string{"password": taken.Password,
				"passwordVerify": taken.Password}, blackbox.Headers{"ot-auth": final.Header.Get("ot-auth")}).Is(t, 200, "")
			t.Fatalf("the support role is an administrator: %s", d.Ok(t, "GET", "/admin/roles", nil, d.Login(t, taken)))
		}
		d.Do(t, "POST", closePath, map[string]string{"userId": chief.ID, "status": "blocked"}, who).Is(t, 403, "FORBIDDEN")
		phone(support, taken.Phone).Is(t, 403, "FORBIDDEN")
		mail(support, taken.Mail).Is(t, 403, "FORBIDDEN")
		d.Do(t, "POST", closePath, map[string]string{"status": "active"}, who).Is(t, 403, "FORBIDDEN")

		// The restriction applies to an administrator's own account only; customers are served as before.
		own := d.Login(t, chief)
		d.Do(t, "POST", blackbox.PhonePath, map[string]string{"userId": chief.ID, "phoneNum": taken.Phone,
			"countryCode": "90"}, own).
			Is(t, 403, "FORBIDDEN")
		d.Ok(t, "POST", blackbox.PhonePath, map[string]string{"userId": support.ID, "phoneNum": taken.Phone,
			"countryCode": "90"}, own)
		who = d.Login(t, blackbox.Account{ID: support.ID, Country: "90", Phone: taken.Phone, Password: support.Password})
		phone(customer, "5559990002").Is(t, 200, "")
		mail(customer, "customer@example.test").Is(t, 200, "")
		phone(blackbox.Account{ID: "01JD3X4Q7V0S8D4T2M6B9N1ZKA"}, "5559990003").Is(t, 404, "RECORD_NOT_FOUND")
	})
}
