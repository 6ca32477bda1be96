package people_test

import (
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
)

// D-KYC-11: the confirmed data is compared with the current account, and unknown results are reported as unknown.
func TestChecks(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		checks := func(id string) identity.Checks {
			t.Helper()
			u, err := s.users.Get(t.Context(), id)
			storetest.Must(t, err)
			c, err := s.service.Checks(t.Context(), u)
			storetest.Must(t, err)
			return c
		}
		same := func(id string, want identity.Checks) {
			t.Helper()
			storetest.Same(t, checks(id), want)
		}
		yes, no := new(true), new(false)
		same("u0", identity.Checks{})
		s.confirms("u0", idBody(person), is("u0", "Ayşe Yılmaz", "waitingApproval"))
		same("u0", identity.Checks{Number: yes, Name: yes, BirthDate: yes})

		// Another account has the same number, as an installation may allow.
		s.service.Accounts = 2
		s.confirms("u1", idBody(person), is("u1", "Ayşe Yılmaz", "waitingApproval"))
		same("u0", identity.Checks{Number: yes, Name: yes, BirthDate: yes, Same: 1})

		// An administrator gave the account another name.
		u, err := s.users.Get(t.Context(), "u1")
		storetest.Must(t, err)
		storetest.Must(t, s.db.Commit(t.Context(), user.SetPerson{UserID: "u1", Name: "Fatma", Surname: u.Surname,
			IdentityHash: u.IdentityHash, BirthDate: "1991-05-01"}))
		same("u1", identity.Checks{Number: yes, Name: no, BirthDate: no, Same: 1})

		// The register was asked.
		s.service.Registry = meanwhile(func() {})
		s.confirms("u2", idBody(person, "userIdentityNumber", other, "useTCKNService", true),
			is("u2", "Ayşe Yılmaz", "waitingApproval"))
		same("u2", identity.Checks{Number: yes, Register: yes, Name: yes, BirthDate: yes})
	})
}
