package account_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

// Numbers of countries where 0 is part of the number: this version stores one, the other is its form of 0.9.
const ivorian, ivorianFormer = "+2250707070707", "+225707070707"

func numbered(n int, phone string) user.Add {
	a := usertest.Sample(n)
	a.Phone = phone
	return a
}

// phoneOf reads what 0.9 reads.
func phoneOf(t *testing.T, db *persistence.DB, id string) (phone string) {
	storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("users").Column("phone").Where("id = ?", id).
		Scan(t.Context(), &phone))
	return phone
}

func loginID(t *testing.T, s account.Users, who user.Identifier) string {
	e, err := s.Login(t.Context(), who, "?nobody")
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		t.Fatal(err)
	}
	reset, err := s.ByPhone(t.Context(), who.Phone, who.Former)
	if reset.ID != e.ID || (err == nil) != (e.ID != "") {
		t.Errorf("%+v: a login finds %q, a reset %q: %v", who, e.ID, reset.ID, err)
	}
	return e.ID
}

// A new installation stores numbers as they are, and finds no account by a form of 0.9.
func TestNumbersOfNewInstallation(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := account.NewUsers(db)
		one, two := numbered(1, "+390331234567"), numbered(2, "+39331234567")
		storetest.Must(t, db.Commit(t.Context(), one))
		storetest.Equal(t, loginID(t, s, user.Identifier{Phone: ivorian, Former: two.Phone}), "")
		storetest.Must(t, db.Commit(t.Context(), two)) // a mobile beside the line of one
		who := user.Identifier{Phone: one.Phone, Former: two.Phone}
		if got := loginID(t, s, who); got != one.ID || phoneOf(t, db, one.ID) != one.Phone {
			t.Errorf("found %q, stored as %s", got, phoneOf(t, db, one.ID))
		}
	})
}

// Beside nodes of 0.9, every account is found by both versions, and one number has one account. The repair ends this.
func TestNumbersBesideFormerVersion(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, s := t.Context(), account.NewUsers(db)
		persistencetest.Exec(t, db, "DELETE FROM seed WHERE name = 'phones'")
		who := user.Identifier{Phone: ivorian, Former: ivorianFormer}
		old, mine, changed := numbered(1, "+905320000009"), numbered(2, "+2290197123456"), numbered(3, "+905320000003")
		storetest.Must(t, db.Commit(ctx, old, mine, changed))
		persistencetest.Exec(t, db, "UPDATE users SET phone = ? WHERE id = ?", ivorianFormer, old.ID) // by 0.9
		storetest.Equal(t, loginID(t, s, who), old.ID, "the account of 0.9 is not found")
		storetest.Wants(t, db.Commit(ctx, numbered(4, ivorian)), fault.RecordAlreadyExist)
		taken := storetest.Value(s.PhonesTaken(ctx, []string{ivorian, mine.Phone, "+905320000003", "+905320000004"}))(t)
		storetest.Same(t, taken, []string{ivorian, mine.Phone, "+905320000003"})

		storetest.Must(t, db.Commit(ctx, user.SetPhone{UserID: changed.ID, CV: 1, CountryCode: "242",
			Phone: "+242061234567"}))
		for _, a := range []user.Add{mine, numbered(3, "+242061234567")} {
			former := user.FormerOf(a.Phone)
			storetest.Equal(t, phoneOf(t, db, a.ID), former, a.Phone)
			u, err := s.Get(ctx, a.ID)
			if got := loginID(t, s, user.Identifier{Phone: a.Phone, Former: former}); got != a.ID || u.Phone != a.Phone {
				t.Errorf("%s: found %q with %s, %v", a.Phone, got, u.Phone, err)
			}
			found, err := s.Find(ctx, user.Query{Phone: &a.Phone}, page.Query[user.Place]{})
			if err != nil || len(found.Records) != 1 || found.Records[0].ID != a.ID {
				t.Errorf("%s is not listed: %+v, %v", a.Phone, found, err)
			}
		}
		storetest.Equal(t, loginID(t, s, user.Identifier{Phone: "+242071234567", Former: "+24261234567"}), "")
		repairBoth(t, db, s, old, mine)
		storetest.Equal(t, loginID(t, s, who), old.ID, "the repaired account is not found")
		// 0.9 changes the phone alone.
		persistencetest.Exec(t, db, "UPDATE users SET phone = '+905320000003', number = '+242061234567' WHERE id = ?",
			changed.ID)
		storetest.Equal(t, storetest.Value(s.Get(ctx, changed.ID))(t).Phone, "+905320000003")
	})
}

// repairBoth repairs the numbers of two accounts, and finds those of two others that are the same number.
func repairBoth(t *testing.T, db *persistence.DB, s account.Users, old, mine user.Add) {
	t.Helper()
	ctx := t.Context()
	twins := []user.Add{numbered(5, "+79121234567"), numbered(6, "+789121234567")}
	storetest.Must(t, db.Commit(ctx, twins[0], twins[1], numbered(7, "+39331234567")))
	var lines []string
	ambiguous, err := user.FindShortened(ctx, s, func(f user.Shortened) error {
		lines = append(lines, fmt.Sprintf("%s %s %s", f.UserID, f.Repaired, f.Other))
		if f.UserID == old.ID || f.UserID == mine.ID {
			return db.Commit(context.WithoutCancel(ctx), user.SetPhone{UserID: f.UserID, CV: f.CV, Phone: f.Repaired,
				CountryCode: f.CountryCode, Repair: true})
		}
		return nil
	})
	storetest.Must(t, err)
	want := []string{old.ID + " " + ivorian + " ", mine.ID + " " + mine.Phone + " ",
		numbered(3, "").ID + " +242061234567 ", twins[1].ID + " " + twins[0].Phone + " " + twins[0].ID}
	slices.Sort(lines)
	slices.Sort(want)
	storetest.Same(t, lines, want)
	if len(ambiguous) != 1 || ambiguous["39"] != 1 {
		t.Errorf("ambiguous: %v", ambiguous)
	}
	storetest.Equal(t, phoneOf(t, db, old.ID), ivorian, "the numbers were not stored")
	storetest.Equal(t, phoneOf(t, db, mine.ID), mine.Phone, "the numbers were not stored")
	storetest.Must(t, account.EndPhoneRepair(ctx, db))
	storetest.Must(t, account.EndPhoneRepair(ctx, db))
	if done, err := account.PhonesRepaired(ctx, db); err != nil || !done {
		t.Errorf("the repair is not recorded: %v", err)
	}
}
