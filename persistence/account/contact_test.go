package account_test

import (
	"context"
	"fmt"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// contacts changes the destinations of codes: the credential version rises, and sessions end in the same unit.
func contacts(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	one := usertest.Sample(1)
	one.EmailVerified = true
	storetest.Must(t, c.Commit(ctx, one, usertest.Sample(2)))
	want := getUser(t, s, one.ID)
	storetest.Must(t, c.Commit(ctx, user.SetPhone{UserID: want.ID, CV: 1, CountryCode: "49", Phone: "+4915100000000"}))
	want.CountryCode, want.Phone, want.CV = "49", "+4915100000000", 2
	want.MoneyVersion = 1
	got := storetest.Value(s.ByPhone(ctx, want.Phone, ""))(t)
	want.CredentialsAt = got.CredentialsAt
	wantsUser(t, got, want)
	storetest.Must(t, c.Commit(ctx, user.SetMail{UserID: want.ID, CV: 2, Mail: "new@example.com"},
		user.EndSessions{UserID: want.ID, SV: 1, At: usertest.Now}))
	want.Email, want.EmailVerified, want.CV, want.SV = "new@example.com", false, 4, 2
	want.MoneyVersion = 2
	got = storetest.Value(s.ByEmail(ctx, want.Email))(t)
	want.CredentialsAt = got.CredentialsAt
	wantsUser(t, got, want)
	for _, old := range []user.Identifier{{Phone: one.Phone}, {Mail: one.Email}} {
		storetest.Wants(t, storetest.Err(s.Login(ctx, old, "?unknown")), fault.RecordNotFound, old)
	}
	for _, w := range []commit.Write{user.SetPhone{UserID: want.ID, CV: 3, CountryCode: "90", Phone: "+905550000000"},
		user.SetMail{UserID: want.ID, CV: 3, Mail: "stale@example.com"}} {
		storetest.Is(t, c.Commit(ctx, w), commit.ErrFenced, w)
	}
	two := usertest.Sample(2)
	storetest.Wants(t, c.Commit(ctx, user.SetPhone{UserID: want.ID, CV: 4, CountryCode: "90", Phone: two.Phone}),
		fault.RecordAlreadyExist)
	storetest.Wants(t, c.Commit(ctx, user.SetMail{UserID: want.ID, CV: 4, Mail: two.Email}), fault.RecordAlreadyExist)
	wantsUser(t, getUser(t, s, want.ID), want, "after refused changes")
}

// When eight accounts set one number or one address, one account gets each.
func contactsUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	for i := range 16 {
		storetest.Must(t, c.Commit(ctx, usertest.Sample(i)))
	}
	for _, want := range map[string]func(i int) commit.Write{
		"number": func(i int) commit.Write {
			return user.SetPhone{UserID: usertest.Sample(i).ID, CV: 1, CountryCode: "90", Phone: "+905559998877"}
		},
		"address": func(i int) commit.Write {
			return user.SetMail{UserID: usertest.Sample(8 + i).ID, CV: 1, Mail: "same@example.com"}
		},
	} {
		storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(i int) error {
			return c.InTx(ctx, func(ctx context.Context) error { return c.Commit(ctx, want(i)) })
		})
	}
	all := storetest.Value(s.List(ctx, "", 100))(t)
	raised := 0
	for _, u := range all {
		raised += int(u.CV - 1)
	}
	storetest.Equal(t, raised, 2, fmt.Sprint(all))
}

// accountNetworks are remembered in order; beyond the bound the oldest is forgotten.
func accountNetworks(t *testing.T, s user.Store, c commit.Committer) {
	want := usertest.Sample(1)
	storetest.Must(t, c.Commit(t.Context(), want, usertest.Sample(2)))
	marks := map[string]bool{}
	first := user.Mark(want.ID, "198.51.100.0/24")
	storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: usertest.Now, Network: first}))
	for i := range user.MaxNetworks - 1 {
		mark := user.Mark(want.ID, fmt.Sprintf("10.%d.0.0/24", i))
		marks[mark] = true
		storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: usertest.Now, Network: mark}))
	}
	storetest.Equal(t, getUser(t, s, want.ID).Networks.Has(first), true, "the first of as many as there is room for")
	last := user.Mark(want.ID, "192.0.2.0/24")
	storetest.Must(t, c.Commit(t.Context(), user.LoggedIn{UserID: want.ID, At: usertest.Now, Network: last}))
	u := storetest.Value(s.Get(t.Context(), want.ID))(t)
	for mark := range marks {
		if !u.Networks.Has(mark) {
			t.Errorf("%s is forgotten", mark)
		}
	}
	if u.Networks.Has(first) || !u.Networks.Has(last) {
		t.Errorf("the oldest is kept or the newest is not: %d characters", len(u.Networks))
	}
	storetest.Equal(t, storetest.Value(s.Get(t.Context(), usertest.Sample(2).ID))(t).Networks, "", "another account")
}

// Of several decisions on one state of an account one succeeds; each write changes only its own fields.
func holdUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	u := user.New("u1", usertest.Now)
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
	u = getUser(t, s, "u1")
	if won != 1 || u.KYCConfirm != user.Rejected || u.AddressConfirmed != user.ManuelApproved || u.Name != "Ayşe" ||
		u.IdentityHash != "h" || u.BirthDate != "1990-05-01" || len(u.Surname) != len("Yılmaz0") || u.CV != 1 {
		t.Errorf("%d of 8 won: %+v", won, u)
	}
	err := c.InTx(t.Context(), func(ctx context.Context) error { return storetest.Err(s.Hold(ctx, "u2")) })
	storetest.Wants(t, err, fault.RecordNotFound, "an unknown account")
}
