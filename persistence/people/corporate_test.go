package people_test

import (
	"fmt"
	"sync"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/corporate"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestCorporateStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) corporate.Store { return people.NewCorporate(db) },
		storetest.Cases[corporate.Store]{
			"Status": corporateStatus,
			"Users":  corporateUsers,
			"Once":   corporateOnce,
		}, "corporate_application",
		"corporate_user")
}

// A change of the status returns the previous application, even to concurrent callers.
func corporateStatus(t *testing.T, s corporate.Store, _ commit.Committer) {
	a := persistencetest.Whole(t, func(a *corporate.Application) { a.Status = "0" })
	id := storetest.Value(s.AddApplication(t.Context(), a))(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	storetest.Race(t, 8, "", func(n int) error {
		was, err := s.SetApplicationStatus(t.Context(), id, fmt.Sprint(n+1))
		mu.Lock()
		defer mu.Unlock()
		if seen[was.Status] {
			t.Errorf("%+v after %v", was, seen)
		}
		seen[was.Status] = true
		want := a
		want.ID, want.Status, want.CreatedAt = id, was.Status, was.CreatedAt
		storetest.Same(t, was, want)
		return err
	})
	got, err := s.Applications(t.Context(), corporate.ApplicationQuery{ID: &id}, page.Query[corporate.Place]{})
	storetest.Must(t, err)
	if !seen["0"] || seen[got.Records[0].Status] {
		t.Errorf("%+v after %v", got.Records, seen)
	}
	storetest.Wants(t, storetest.Err(s.SetApplicationStatus(t.Context(), 1<<40, "x")), fault.RecordNotFound)
}

func corporateUser(n int) corporate.User {
	return corporate.User{UserID: fmt.Sprint("u", n), CorporateUserID: "acme", Role: "owner", Status: "active",
		CountryCode: "90", PhoneNumber: fmt.Sprint("532000000", n), Email: new(fmt.Sprintf("u%d@acme.example", n))}
}

func corporateUsers(t *testing.T, s corporate.Store, _ commit.Committer) {
	var all []corporate.User // newest first
	for n := range 4 {
		u := corporateUser(n)
		switch n {
		case 0:
			u = persistencetest.Whole[corporate.User](t)
		case 2:
			u.CorporateUserID, u.Status, u.Email, u.Made = "other", "passive", nil, true
		}
		id := storetest.Value(s.AddUser(t.Context(), u))(t)
		u.ID = id
		all = append([]corporate.User{u}, all...)
	}
	pagetest.Check(t, s.Users, corporate.UserQuery{}, all)
	pagetest.Check(t, s.Users, corporate.UserQuery{UserID: new("u1")}, all[2:3])
	pagetest.Check(t, s.Users, corporate.UserQuery{CorporateUserID: new("other"), Status: new("passive")}, all[1:2])
	pagetest.Check(t, s.Users, corporate.UserQuery{Status: new("PASSIVE")}, []corporate.User{})

	// A change keeps whether the account was made, and takes no other account.
	next := all[2]
	storetest.Must(t, s.ChangeUser(t.Context(), next.ID, func(u corporate.User) (corporate.User, error) {
		u.Role, u.Made = "next", true
		return u, nil
	}))
	next.Role = "next"
	pagetest.Check(t, s.Users, corporate.UserQuery{UserID: new("u1")}, []corporate.User{next})
	storetest.Wants(t, s.ChangeUser(t.Context(), next.ID, func(corporate.User) (corporate.User, error) {
		return corporateUser(3), nil
	}), fault.RecordAlreadyExist)
}

// Concurrent callers compete for an account, and for a mail address of new accounts.
func corporateOnce(t *testing.T, s corporate.Store, _ commit.Committer) {
	for _, edit := range map[string]func(*corporate.User, int){
		"account": func(u *corporate.User, n int) { u.Email = new(fmt.Sprintf("x%d@acme.example", n)) },
		"address": func(u *corporate.User, n int) { u.UserID, u.Made = fmt.Sprint("made", n), true },
	} {
		storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(n int) error {
			u := corporateUser(1)
			edit(&u, n)
			return storetest.Err(s.AddUser(t.Context(), u))
		})
	}
	like := corporateUser(1)
	got := storetest.Value(s.FindLink(t.Context(), like))(t)
	if got.Made || got.UserID != "u1" {
		t.Errorf("like an account: %+v", got)
	}
	like.UserID = ""
	made := storetest.Value(s.FindLink(t.Context(), like))(t)
	if !made.Made || made.ID == got.ID {
		t.Errorf("like an address: %+v", made)
	}
	like.CorporateUserID = "other"
	storetest.Wants(t, storetest.Err(s.FindLink(t.Context(), like)), fault.RecordNotFound)
}
