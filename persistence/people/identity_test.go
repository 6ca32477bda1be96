package people_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIdentityStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) identity.Store { return people.NewIdentities(db) },
		storetest.Cases[identity.Store]{"Keep": identityKeep, "Inform": identityInform, "LockUnderRace": identityLock,
			"Rehash": identityRehash}, "user_identity",
		"additional_info", "users", "user_role")
}

func identityKeep(t *testing.T, s identity.Store, _ commit.Committer) {
	_, err := s.Sealed(t.Context(), "u1")
	storetest.Wants(t, err, fault.RecordNotFound)
	for _, sealed := range []string{"first", "second"} {
		for _, id := range []string{"u1", "u2"} {
			p := identity.Person{SecondName: "Nur", Country: "TR", CityID: "34", DistrictID: "1", Address: "Moda",
				OccupationID: "7", Name: sealed, Surname: id, BirthDate: "1990-05-01", Registered: sealed == "second"}
			storetest.Must(t, s.Keep(t.Context(), id, p, []byte(sealed+id)))
			got, err := s.Sealed(t.Context(), id)
			storetest.Must(t, err)
			storetest.Same(t, string(got), sealed+id)
			kept, err := s.Kept(t.Context(), id)
			storetest.Must(t, err)
			storetest.Same(t, kept, identity.Kept{FullName: sealed + " Nur " + id, BirthDate: "1990-05-01",
				Registered: sealed == "second", Sealed: got})
		}
	}
}

func identityInform(t *testing.T, s identity.Store, _ commit.Committer) {
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

// Of several accounts that take one number concurrently, exactly the permitted count gets it.
func identityLock(t *testing.T, s identity.Store, c commit.Committer) {
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

// plainKeys open sealed values and hash them in a form readable by a test.
type plainKeys string

func (k plainKeys) Open(sealed, _ []byte) ([]byte, error) {
	if k == "" {
		return nil, errors.New("no key")
	}
	return sealed, nil
}

func (k plainKeys) StableHash(domain string, parts ...string) string {
	return fmt.Sprint(k, domain, parts[0])
}

// Hashes are migrated to the steady key, page by page; an account that changed meanwhile is left alone.
func identityRehash(t *testing.T, s identity.Store, c commit.Committer) {
	const accounts = 1203 // three pages
	for i := range accounts {
		u := user.New(fmt.Sprintf("u%04d", i), time.UnixMilli(1_700_000_000_000))
		u.Email, u.IdentityHash = u.ID+"@example.com", "old"
		if i%400 == 7 {
			u.IdentityHash = "" // not confirmed
		}
		storetest.Must(t, c.Commit(t.Context(), user.Add{User: u}))
		if i%300 != 5 {
			storetest.Must(t, s.Keep(t.Context(), u.ID, identity.Person{}, []byte("n")))
		}
	}
	if _, _, err := identity.Rehash(t.Context(), s, plainKeys(""), func(int) {}); err == nil {
		t.Error("no error of a number that cannot be opened")
	}
	for _, want := range []int{accounts - 3 - 4, 0} {
		seen := 0
		changed, left, err := identity.Rehash(t.Context(), s, plainKeys("k"), func(n int) { seen = n })
		if changed != want || left != 4 || seen != accounts-3 || err != nil {
			t.Fatalf("%d changed and %d left of %d, %v; want %d", changed, left, seen, err, want)
		}
	}
	if n, err := s.Others(t.Context(), "nobody", "kidentityn"); n != accounts-7 || err != nil {
		t.Errorf("%d accounts are found, %v", n, err)
	}
	if n, err := s.Others(t.Context(), "nobody", "kidentityn", "old"); n != accounts-3 || err != nil {
		t.Errorf("%d accounts are found under both, %v", n, err)
	}
	storetest.Must(t, s.Rehash(t.Context(), "u0000", "old", "wrong"))
	if n, err := s.Others(t.Context(), "nobody", "wrong"); n != 0 || err != nil {
		t.Errorf("a hash that had moved on was replaced, %v", err)
	}
}

// Each field and each answer is in its column, also if an earlier record is replaced.
func TestIdentityColumns(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := people.NewIdentities(db), t.Context()
		p, info := persistencetest.Whole[identity.Person](t), persistencetest.Whole[identity.Info](t)
		storetest.Must(t, s.Keep(ctx, "jane", identity.Person{}, []byte{1}))
		storetest.Must(t, s.Keep(ctx, "jane", p, []byte{2}))
		for _, i := range []identity.Info{{UserID: info.UserID}, info} {
			_, err := s.Inform(ctx, i)
			storetest.Must(t, err)
		}
		var kept identity.Person
		storetest.Must(t, db.Conn(ctx).NewSelect().Table("user_identity").
			Column("second_name", "country", "city_id", "district_id", "address", "occupation_id").
			Scan(ctx, &kept.SecondName, &kept.Country, &kept.CityID, &kept.DistrictID, &kept.Address, &kept.OccupationID))
		storetest.Same(t, kept, identity.Person{SecondName: p.SecondName, Country: p.Country, CityID: p.CityID,
			DistrictID: p.DistrictID, Address: p.Address, OccupationID: p.OccupationID})
		got := identity.Info{ID: info.ID, UserID: info.UserID}
		c := &got.Choices
		storetest.Must(t, db.Conn(ctx).NewSelect().Table("additional_info").
			Column("purpose", "source", "income", "amount", "count",
				"purpose_text", "source_text", "income_text", "amount_text", "count_text").
			Scan(ctx, &c[0].OptionID, &c[1].OptionID, &c[2].OptionID, &c[3].OptionID, &c[4].OptionID,
				&c[0].Explanation, &c[1].Explanation, &c[2].Explanation, &c[3].Explanation, &c[4].Explanation))
		storetest.Same(t, got, info)
	})
}
