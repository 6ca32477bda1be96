package usertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"castellan/domain/access/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// names changes a name, which does not affect credentials.
func names(t *testing.T, s user.Store, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), Sample(1), Sample(2)))
	want, other := get(t, s, Sample(1).ID), get(t, s, Sample(2).ID)
	storetest.Must(t, c.Commit(t.Context(), user.SetName{UserID: want.ID, Name: "İpek", Surname: "O'Neil %"}))
	want.Name, want.Surname = "İpek", "O'Neil %"
	if got := get(t, s, want.ID); !same(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := get(t, s, other.ID); !same(got, other) {
		t.Errorf("another account changed: %+v", got)
	}
}

// contacts changes the destinations of codes: the credential version rises, and sessions end in the same unit.
func contacts(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	one := Sample(1)
	one.EmailVerified = true
	storetest.Must(t, c.Commit(ctx, one, Sample(2)))
	want := get(t, s, one.ID)
	storetest.Must(t, c.Commit(ctx, user.SetPhone{UserID: want.ID, CV: 1, CountryCode: "49", Phone: "+4915100000000"}))
	want.CountryCode, want.Phone, want.CV = "49", "+4915100000000", 2
	if got, err := s.ByPhone(ctx, want.Phone); err != nil || !same(got, want) {
		t.Errorf("%v, got %+v, want %+v", err, got, want)
	}
	storetest.Must(t, c.Commit(ctx, user.SetMail{UserID: want.ID, CV: 2, Mail: "new@example.com"},
		user.EndSessions{UserID: want.ID, SV: 1, At: Now}))
	want.Email, want.EmailVerified, want.CV, want.SV = "new@example.com", false, 4, 2
	if got, err := s.ByEmail(ctx, want.Email); err != nil || !same(got, want) {
		t.Errorf("%v, got %+v, want %+v", err, got, want)
	}
	for _, old := range []user.Identifier{{Phone: one.Phone}, {Mail: one.Email}} {
		if _, err := s.Login(ctx, old, "?nobody"); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("the account is still found by %v: %v", old, err)
		}
	}
	stale := []commit.Write{user.SetPhone{UserID: want.ID, CV: 3, CountryCode: "90", Phone: "+905550000000"},
		user.SetMail{UserID: want.ID, CV: 3, Mail: "stale@example.com"}}
	for _, w := range stale {
		if err := c.Commit(ctx, w); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	two := Sample(2)
	storetest.Wants(t, c.Commit(ctx, user.SetPhone{UserID: want.ID, CV: 4, CountryCode: "90", Phone: two.Phone}),
		fault.RecordAlreadyExist)
	storetest.Wants(t, c.Commit(ctx, user.SetMail{UserID: want.ID, CV: 4, Mail: two.Email}), fault.RecordAlreadyExist)
	if got := get(t, s, want.ID); !same(got, want) {
		t.Errorf("refused changes left %+v, want %+v", got, want)
	}
}

// When eight accounts set one number or one address, one account gets each.
func contactsUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	for i := range 16 {
		storetest.Must(t, c.Commit(ctx, Sample(i)))
	}
	for kind, want := range map[string]func(i int) commit.Write{
		"number": func(i int) commit.Write {
			return user.SetPhone{UserID: Sample(i).ID, CV: 1, CountryCode: "90", Phone: "+905559998877"}
		},
		"address": func(i int) commit.Write {
			return user.SetMail{UserID: Sample(8 + i).ID, CV: 1, Mail: "same@example.com"}
		},
	} {
		won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
			return c.InTx(ctx, func(ctx context.Context) error { return c.Commit(ctx, want(i)) })
		})
		if won != 1 {
			t.Errorf("%d of 8 have the %s", won, kind)
		}
	}
	all, err := s.List(ctx, "", 100)
	storetest.Must(t, err)
	raised := 0
	for _, u := range all {
		raised += int(u.CV - 1)
	}
	if raised != 2 {
		t.Errorf("%d accounts changed, want 2: %s", raised, fmt.Sprint(all))
	}
}
