// Package identitytest is the contract of identity.Store as tests.
package identitytest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/identity"
	"castellan/domain/storetest"
	"castellan/domain/user"
)

// Run checks an implementation of identity.Store.
func Run(t *testing.T, open storetest.Open[identity.Store]) {
	storetest.Run(t, open, storetest.Cases[identity.Store]{"Keep": keep, "Inform": inform, "LockUnderRace": lock})
}

func keep(t *testing.T, s identity.Store, _ commit.Committer) {
	_, err := s.Sealed(t.Context(), "u1")
	storetest.Wants(t, err, fault.RecordNotFound)
	for _, sealed := range []string{"first", "second"} {
		for _, id := range []string{"u1", "u2"} {
			p := identity.Person{SecondName: "Nur", Country: "TR", CityID: "34", DistrictID: "1", Address: "Moda",
				OccupationID: "7"}
			storetest.Must(t, s.Keep(t.Context(), id, p, []byte(sealed+id)))
			got, err := s.Sealed(t.Context(), id)
			storetest.Must(t, err)
			storetest.Same(t, string(got), sealed+id)
		}
	}
}

func inform(t *testing.T, s identity.Store, _ commit.Committer) {
	i := identity.Info{UserID: "u1", Choices: [5]identity.Choice{{OptionID: 1},
		{OptionID: 2, Explanation: "why"}, {OptionID: 3}, {OptionID: 4}, {OptionID: 5}}}
	first, err := s.Inform(t.Context(), i)
	storetest.Must(t, err)
	other := i
	other.UserID = "u2"
	second, err := s.Inform(t.Context(), other)
	storetest.Must(t, err)
	i.Choices[0] = identity.Choice{OptionID: 9, Explanation: "other"}
	again, err := s.Inform(t.Context(), i)
	storetest.Must(t, err)
	if first == second || first != again {
		t.Errorf("ids %d, %d and %d", first, second, again)
	}
}

// Of several accounts that take one number at the same time as many get it as may.
func lock(t *testing.T, s identity.Store, c commit.Committer) {
	for i := range 8 {
		u := user.New(fmt.Sprint("u", i), time.UnixMilli(1_700_000_000_000))
		u.Email = u.ID + "@example.com"
		storetest.Must(t, c.Commit(t.Context(), user.Add{User: u}))
	}
	const hash, most = "0123456789abcdef0123", 3
	won := storetest.Race(t, 8, fault.RecordLimitReached, func(i int) error {
		id := fmt.Sprint("u", i)
		return c.InTx(t.Context(), func(ctx context.Context) error {
			if err := s.Lock(ctx, hash); err != nil {
				return err
			}
			n, err := s.Others(ctx, id, hash)
			if err == nil && n >= most {
				err = fault.New(fault.RecordLimitReached, "full")
			}
			if err != nil {
				return err
			}
			return c.Commit(ctx, user.SetPerson{UserID: id, Name: "a", Surname: "b", IdentityHash: hash})
		})
	})
	n, err := s.Others(t.Context(), "nobody", hash)
	if won != most || n != most || err != nil {
		t.Errorf("%d of 8 won, %d have the number, %v", won, n, err)
	}
	if n, err := s.Others(t.Context(), "nobody", ""); n != 0 || err != nil {
		t.Errorf("%d accounts share that they have no number, %v", n, err)
	}
}
