package usertest

import (
	"context"
	"fmt"
	"testing"

	"castellan/domain/access/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Of several decisions on one state of an account one succeeds; each write changes only its own fields.
func holdUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	u := user.New("u1", Now)
	u.Email = "u1@example.com"
	storetest.Must(t, c.Commit(t.Context(), user.Add{User: u}))
	won := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
		return c.InTx(t.Context(), func(ctx context.Context) error {
			held, err := s.Hold(ctx, "u1")
			if err != nil {
				return err
			}
			if held.KYCConfirm != user.WaitingApproval {
				return fault.New(fault.InvalidState, "decided")
			}
			return c.Commit(ctx, user.SetKYC{UserID: "u1", KYCConfirm: user.Rejected},
				user.SetAddressConfirmed{UserID: "u1", AddressConfirmed: user.ManuelApproved},
				user.SetPerson{UserID: "u1", Name: "Ayşe", Surname: fmt.Sprint("Yılmaz", i), IdentityHash: "h",
					BirthDate: "1990-05-01"})
		})
	})
	u = get(t, s, "u1")
	if won != 1 || u.KYCConfirm != user.Rejected || u.AddressConfirmed != user.ManuelApproved || u.Name != "Ayşe" ||
		u.IdentityHash != "h" || u.BirthDate != "1990-05-01" || len(u.Surname) != len("Yılmaz0") || u.CV != 1 {
		t.Errorf("%d of 8 won: %+v", won, u)
	}
	err := c.InTx(t.Context(), func(ctx context.Context) error { _, err := s.Hold(ctx, "u2"); return err })
	if fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("an unknown account: %v", err)
	}
}
