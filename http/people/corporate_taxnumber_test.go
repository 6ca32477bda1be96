package people_test

import (
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// D-INT-11: the tax number of an account comes with its link to a company and is found by
// list-users; the audit does not hold it.
func TestTaxNumber(t *testing.T) {
	corporateBoth(t, func(s *site) {
		const known, other = "1234567890", "4540536920"
		with := func(account, number string) string { return "{" + account + ann + `,"taxNumber":"` + number + `"}` }
		has := func(id, want string) {
			t.Helper()
			u, err := s.users.Get(t.Context(), id)
			storetest.Must(t, err)
			if u.TaxNumber != want || u.SV != 1 || u.CV != 1 {
				t.Errorf("%s has %q, want %q; %+v", id, u.TaxNumber, want, u)
			}
		}
		for _, wrong := range []string{"1234567891", "123456789", "12345678901", "abcdefghij", " "} {
			s.refuses(insert, with(`"userId":"jane",`, wrong), 400, fault.InvalidField, "taxNumber")
			s.refuses(update, `{"id":99,"taxNumber":"`+wrong+`"}`, 400, fault.InvalidField, "taxNumber")
		}
		s.refuses(update, `{"id":99,"taxNumber":"`+known+`"}`, 404, fault.RecordNotFound, "")
		has("jane", "")

		s.Wants(insert, with(`"userId":"jane",`, known), 200, `{"id":"1","message":null}`)
		s.Wants(insert, with(`"userId":"jane",`, known), 200, `{"id":"1","message":null}`)
		s.Wants(insert, `{"userId":"jane",`+ann+`}`, 200, `{"id":"1","message":null}`)
		s.refuses(insert, with(`"userId":"jane",`, other), 409, fault.RecordAlreadyExist, "already")
		has("jane", known)

		s.Wants(insert, with("", other), 200, `{"id":"2","message":null}`)
		s.Wants(insert, with("", other), 200, `{"id":"2","message":null}`)
		s.refuses(insert, with("", known), 409, fault.RecordAlreadyExist, "already")
		found, err := s.users.Find(t.Context(), user.Query{TaxNumber: new(other)}, page.Query[user.Place]{})
		storetest.Must(t, err)
		if len(found.Records) != 1 || found.Records[0].ID == "jane" {
			t.Fatalf("found %+v", found)
		}

		s.Wants(update, `{"id":1,"taxNumber":"`+other+`"}`, 200, `{"message":null}`)
		s.Wants(update, `{"id":1,"taxNumber":"`+other+`"}`, 200, `{"message":null}`)
		has("jane", other)
		s.Wants(update, `{"id":1,"taxNumber":null,"role":"clerk"}`, 200, `{"message":null}`)
		has("jane", "")
		if got := s.audited(); strings.Contains(got, known) || strings.Contains(got, other) ||
			!strings.Contains(got, "CORPORATE_USER_ADD 1 jane TaxNumber\n") ||
			!strings.Contains(got, "CORPORATE_USER_UPDATE 1 jane TaxNumber\n") ||
			!strings.Contains(got, "CORPORATE_USER_UPDATE 1 jane Role TaxNumber\n") {
			t.Errorf("audited\n%s", got)
		}
	})
}
