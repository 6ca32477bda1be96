package people_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestIdentityStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) identity.Store { return people.NewIdentities(db) },
		storetest.Cases[identity.Store]{"Rehash": identityRehash}, "user_identity",
		"additional_info", "users", "user_role")
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

// lostRehash is a store that saves no hash.
type lostRehash struct{ identity.Store }

var errLost = errors.New("lost")

func (lostRehash) Rehash(context.Context, string, string, string) error { return errLost }

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
	_, _, err := identity.Rehash(t.Context(), lostRehash{s}, plainKeys("k"), func(int) {})
	storetest.Is(t, err, errLost)
	for _, want := range []int{accounts - 3 - 4, 0} {
		seen := 0
		changed, left, err := identity.Rehash(t.Context(), s, plainKeys("k"), func(n int) { seen = n })
		if changed != want || left != 4 || seen != accounts-3 || err != nil {
			t.Fatalf("%d changed and %d left of %d, %v; want %d", changed, left, seen, err, want)
		}
	}
	storetest.Equal(t, storetest.Value(s.Others(t.Context(), "unknown", "kidentityn"))(t), accounts-7)
	storetest.Equal(t, storetest.Value(s.Others(t.Context(), "unknown", "kidentityn", "old"))(t), accounts-3)
	storetest.Must(t, s.Rehash(t.Context(), "u0000", "old", "wrong"))
	storetest.Equal(t, storetest.Value(s.Others(t.Context(), "unknown", "wrong"))(t), 0)
}

// Each field and each answer is in its column, also if an earlier record is replaced.
func TestIdentityColumns(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := people.NewIdentities(db), t.Context()
		p, info := persistencetest.Whole[identity.Person](t), persistencetest.Whole[identity.Info](t)
		storetest.Must(t, s.Keep(ctx, "jane", identity.Person{}, []byte{1}))
		storetest.Must(t, s.Keep(ctx, "jane", p, []byte{2}))
		for _, i := range []identity.Info{{UserID: info.UserID}, info} {
			storetest.Must(t, storetest.Err(s.Inform(ctx, i)))
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
