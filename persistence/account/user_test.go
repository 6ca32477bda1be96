package account_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

func TestUserStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) user.Store { return account.NewUsers(db) },
		storetest.Cases[user.Store]{
			"Networks":             accountNetworks,
			"AddAndRead":           addAndReadUser,
			"GuardOfALogin":        guardOfLogin,
			"UniqueUnderRace":      uniqueUsersUnderRace,
			"NoPhoneOrNoMail":      noPhoneOrNoMail,
			"Passwords":            accountPasswords,
			"EndSessionsUnderRace": endSessionsUnderRace,
			"VersionsAndStatus":    versionsAndStatus,
			"Marks":                accountMarks,
			"Contacts":             contacts,
			"ContactsUnderRace":    contactsUnderRace,
			"Roles":                accountRoles,
			"HoldUnderRace":        holdUnderRace,
		}, persistencetest.AccountTables...)
}

func getUser(t *testing.T, s user.Store, id string) user.User {
	t.Helper()
	return storetest.Value(s.Get(t.Context(), id))(t)
}

func wantsUser(t *testing.T, got, want user.User, labels ...any) {
	t.Helper()
	storetest.Equal(t, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), labels...)
}

func addAndReadUser(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	want := persistencetest.Whole(t, func(u *user.User) {
		u.Roles, u.Campaigns = []string{"admin", "auditor"}, user.Campaigns{Mail: true}
		u.LastLoginDay = 0 // a login sets it
	})
	storetest.Must(t, c.Commit(ctx, user.Add{User: want, PasswordHash: "hash-1"}))
	byPhone := storetest.Value(s.ByPhone(ctx, want.Phone, ""))(t)
	byMail := storetest.Value(s.ByEmail(ctx, want.Email))(t)
	for name, got := range map[string]user.User{"Get": getUser(t, s, want.ID), "ByPhone": byPhone, "ByEmail": byMail} {
		wantsUser(t, got, want, name)
	}
	part := user.User{ID: want.ID, Email: want.Email, CountryCode: want.CountryCode, Phone: want.Phone,
		Language: want.Language, Status: want.Status, SV: want.SV, CV: want.CV, Roles: want.Roles, Demo: want.Demo,
		TOTP: want.TOTP, Countries: want.Countries, Push: want.Push, LastLoginDay: want.LastLoginDay,
		MustReset: want.MustReset, Networks: want.Networks, FactorsOff: want.FactorsOff, PasskeyHandle: want.PasskeyHandle}
	for _, who := range []user.Identifier{{Phone: want.Phone}, {Mail: want.Email}} {
		login := storetest.Value(s.Login(ctx, who, "?unknown"))(t)
		wantsUser(t, login.User, part, who)
		storetest.Equal(t, login.Hash, "hash-1", who)
	}
}

// The guard comes with the account, or with the key of an unknown identifier.
func guardOfLogin(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	one := usertest.Sample(1)
	phone := user.Identifier{Phone: one.Phone}
	storetest.Must(t, c.Commit(ctx, one))
	read := func(who user.Identifier, want password.Guard) {
		t.Helper()
		if got, err := s.Login(ctx, who, "?them"); !reflect.DeepEqual(got.Guard, want) || (err == nil) != (who == phone) {
			t.Errorf("%v: %+v, %v; want %+v", who, got.Guard, err, want)
		}
	}
	stranger := user.Identifier{Mail: "nobody@example.com"}
	read(phone, password.Guard{Key: one.ID})
	read(stranger, password.Guard{Key: "?them"})
	for _, key := range []string{one.ID, "?them"} {
		storetest.Must(t, c.Commit(ctx, password.SaveGuard{Guard: password.Guard{Key: key,
			Tries: []password.Try{{At: 5, Prefix: "p" + key}}}, Until: time.Now()}))
	}
	read(phone, password.Guard{Key: one.ID, Version: 1, Tries: []password.Try{{At: 5, Prefix: "p" + one.ID}}})
	read(stranger, password.Guard{Key: "?them", Version: 1, Tries: []password.Try{{At: 5, Prefix: "p?them"}}})
}

func uniqueUsersUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	won := storetest.Race(t, 24, fault.RecordAlreadyExist, func(i int) error {
		add := usertest.Sample(100 + i)
		if i%2 == 0 {
			add.Phone = "+905559998877"
		} else {
			add.Email = "same@example.com"
		}
		return c.Commit(ctx, add)
	})
	all := storetest.Value(s.List(ctx, "", 100))(t)
	storetest.Equal(t, won, 2)
	storetest.Equal(t, len(all), 2)
}

// Accounts without a phone, or without an address, do not clash.
func noPhoneOrNoMail(t *testing.T, s user.Store, c commit.Committer) {
	for i := range 3 {
		noPhone, noMail := usertest.Sample(10+i), usertest.Sample(20+i)
		noPhone.Phone, noMail.Email = "", ""
		storetest.Must(t, c.Commit(t.Context(), noPhone, noMail))
		if u := getUser(t, s, noPhone.ID); u.Phone != "" || u.Email == "" {
			t.Errorf("%+v", u)
		}
	}
}

func accountPasswords(t *testing.T, s user.Store, c commit.Committer) {
	ctx, id := t.Context(), usertest.Sample(1).ID
	first := usertest.Sample(1)
	first.MustReset = true
	storetest.Must(t, c.Commit(ctx, first, usertest.Sample(2)))
	storetest.Must(t, c.Commit(ctx, user.SetPassword{UserID: id, CV: 1, Hash: "second"}))
	storetest.Is(t, c.Commit(ctx, user.SetPassword{UserID: id, CV: 1, Hash: "stale"}), commit.ErrFenced)
	secret := storetest.Value(s.Secret(ctx, id))(t)
	if u := getUser(t, s, id); secret != (user.Secret{Hash: "second", Previous: "hash-1"}) || u.CV != 2 || u.SV != 1 ||
		u.MustReset {
		t.Errorf("after a change %+v, cv %d, sv %d", secret, u.CV, u.SV)
	}
	storetest.Must(t, c.Commit(ctx, user.Rehash{UserID: id, Old: "second", New: "second with other parameters"}))
	storetest.Must(t, c.Commit(ctx, user.Rehash{UserID: id, Old: "second", New: "late"}))
	secret = storetest.Value(s.Secret(ctx, id))(t)
	if u := getUser(t, s, id); secret.Hash != "second with other parameters" || secret.Previous != "hash-1" || u.CV != 2 {
		t.Errorf("after a rehash %+v, cv %d", secret, u.CV)
	}
	storetest.Equal(t, storetest.Value(s.Secret(ctx, usertest.Sample(2).ID))(t).Hash, "hash-2", "another account")
}

// Every acknowledged end raised the version by exactly one.
func endSessionsUnderRace(t *testing.T, s user.Store, c commit.Committer) {
	ctx, id := t.Context(), usertest.Sample(1).ID
	storetest.Must(t, c.Commit(ctx, usertest.Sample(1), usertest.Sample(2)))
	won := int64(storetest.RaceOfFences(t, 40, func(int) error {
		u, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		return c.Commit(ctx, user.EndSessions{UserID: id, SV: u.SV, At: usertest.Now})
	}))
	if u := getUser(t, s, id); won == 0 || u.SV != 1+won || u.CV != 1+won {
		t.Errorf("%d ends, sv %d, cv %d", won, u.SV, u.CV)
	}
	if u := getUser(t, s, usertest.Sample(2).ID); u.SV != 1 || u.CV != 1 {
		t.Errorf("another account: sv %d, cv %d", u.SV, u.CV)
	}
}

func versionsAndStatus(t *testing.T, s user.Store, c commit.Committer) {
	ctx, id := t.Context(), usertest.Sample(1).ID
	storetest.Must(t, c.Commit(ctx, usertest.Sample(1)))
	storetest.Must(t, c.Commit(ctx, user.Touch{UserID: id}))
	storetest.Must(t, c.Commit(ctx, user.SetStatus{UserID: id, CV: 2, Status: user.Blocked},
		user.EndSessions{UserID: id, SV: 1, At: usertest.Now}))
	storetest.Is(t, c.Commit(ctx, user.SetStatus{UserID: id, CV: 2, Status: user.Active}), commit.ErrFenced)
	storetest.Must(t, c.Commit(ctx, user.SetAMLStatus{UserID: id, Status: "risky"}, user.SetLevel{UserID: id, Level: 10}))
	if u := getUser(t, s, id); u.Status != user.Blocked || u.CV != 4 || u.SV != 2 || u.AMLStatus != "risky" ||
		u.Level != 10 {
		t.Errorf("status %s, cv %d, sv %d, AML %s, level %d", u.Status, u.CV, u.SV, u.AMLStatus, u.Level)
	}
	// A reset changes the password and ends the sessions in one unit.
	storetest.Must(t, c.Commit(ctx, user.SetPassword{UserID: id, CV: 4, Hash: "new"},
		user.EndSessions{UserID: id, SV: 2, At: usertest.Now}))
	if u := getUser(t, s, id); u.CV != 6 || u.SV != 3 {
		t.Errorf("after a reset cv %d, sv %d", u.CV, u.SV)
	}
	storetest.Is(t, c.Commit(ctx, user.SetPassword{UserID: id, CV: 6, Hash: "lost"},
		user.EndSessions{UserID: id, SV: 1, At: usertest.Now}), commit.ErrFenced, "one fence of two")
	storetest.Equal(t, storetest.Value(s.Secret(ctx, id))(t).Hash, "new", "after a refused unit")
}

// accountMarks tests writes that change an account but not its credentials.
func accountMarks(t *testing.T, s user.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, usertest.Sample(1), usertest.Sample(2)))
	want, other := getUser(t, s, usertest.Sample(1).ID), getUser(t, s, usertest.Sample(2).ID)
	for _, step := range []struct {
		write commit.Write
		set   func()
	}{
		{user.VerifyMail{UserID: want.ID}, func() { want.EmailVerified = true }},
		{user.VerifyMail{UserID: want.ID}, func() {}},
		{user.SetWithdrawProhibited{UserID: want.ID, Prohibited: true},
			func() { want.WithdrawProhibited, want.MoneyVersion = true, 1 }},
		{user.SetWithdrawProhibited{UserID: want.ID, Prohibited: false},
			func() { want.WithdrawProhibited, want.MoneyVersion = false, 2 }},
		{user.SetPreferences{UserID: want.ID, Language: "ar", Campaigns: user.Campaigns{Mail: true}},
			func() { want.Language, want.Campaigns = "ar", user.Campaigns{Mail: true} }},
		{user.SetPreferences{UserID: want.ID, Campaigns: user.Campaigns{SMS: true, Push: true}},
			func() { want.Language, want.Campaigns = "", user.Campaigns{SMS: true, Push: true} }},
		{user.SetTaxNumber{UserID: want.ID, TaxNumber: "1234567890"}, func() { want.TaxNumber = "1234567890" }},
		{user.SetTaxNumber{UserID: want.ID}, func() { want.TaxNumber = "" }},
	} {
		storetest.Must(t, c.Commit(ctx, step.write))
		step.set()
		wantsUser(t, getUser(t, s, want.ID), want, step.write)
	}
	wantsUser(t, getUser(t, s, other.ID), other, "another account")
}

func accountRoles(t *testing.T, s user.Store, c commit.Committer) {
	ctx, a, b := t.Context(), usertest.Sample(1), usertest.Sample(2)
	a.Roles = []string{"admin"}
	storetest.Must(t, c.Commit(ctx, a, b))
	grant := user.Grant{UserID: b.ID, Role: "auditor", At: usertest.Now}
	storetest.Must(t, c.Commit(ctx, grant))
	storetest.Must(t, c.Commit(ctx, grant, user.Grant{UserID: b.ID, Role: "admin", At: usertest.Now}))
	held := storetest.Value(s.Holders(ctx))(t)
	slices.Sort(held["admin"])
	if !slices.Equal(held["admin"], []string{a.ID, b.ID}) || !slices.Equal(held["auditor"],
		[]string{b.ID}) || len(held) != 2 {
		t.Errorf("holders %v", held)
	}
	given := storetest.Value(s.RolesOf(ctx, []string{b.ID, "unknown"}))(t)
	slices.Sort(given[b.ID])
	if !slices.Equal(given[b.ID], []string{"admin", "auditor"}) || len(given) != 1 {
		t.Errorf("roles of one account: %v", given)
	}
	if u := getUser(t, s, b.ID); !slices.Equal(u.Roles, []string{"admin", "auditor"}) ||
		!slices.Equal(u.AllRoles(), []string{"user", "admin", "auditor"}) {
		t.Errorf("roles %v, all %v", u.Roles, u.AllRoles())
	}
	storetest.Must(t, c.Commit(ctx, user.Revoke{UserID: b.ID, Role: "admin"}, user.Revoke{UserID: a.ID, Role: "auditor"}))
	if held, err := s.Holders(ctx); err != nil || !slices.Equal(held["admin"], []string{a.ID}) ||
		!slices.Equal(held["auditor"], []string{b.ID}) {
		t.Errorf("holders %v, %v", held, err)
	}
	if x, y := getUser(t, s, a.ID), getUser(t, s, b.ID); !slices.Equal(x.Roles, []string{"admin"}) ||
		!slices.Equal(y.Roles, []string{"auditor"}) {
		t.Errorf("roles %v and %v", x.Roles, y.Roles)
	}
}
