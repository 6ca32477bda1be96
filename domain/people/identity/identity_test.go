package identity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/identity"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

const (
	number = "10000000146"
	other  = "20000000282"
)

// desk is the service with the accounts u0 to u4 and a register that knows every person.
type desk struct {
	*identity.Service
	t       *testing.T
	db      *persistence.DB
	now     time.Time
	asked   []identity.Person
	denies  bool
	trouble error // error of the register
	expired bool  // the session cannot be renewed
}

func newDesk(t *testing.T) *desk {
	db, ring := persistencetest.SQLite(t), keyringtest.Ring(t, time.Now)
	d := &desk{t: t, db: db, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return d.now }
	dropdowns, parameters := people.NewDropdowns(db), kit.NewParameters(db)
	persistencetest.Exec(t, db, "DELETE FROM dropdown_option")
	persistencetest.Exec(t, db, "DELETE FROM parameter")
	storetest.Must(t, dropdown.Seed(t.Context(), dropdowns))
	storetest.Must(t, parameter.Seed(t.Context(), parameters))
	live := parameter.NewCache(parameters)
	storetest.Must(t, live.Reload(t.Context()))
	for n := range 5 {
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: user.New(fmt.Sprint("u", n), d.now)}))
	}
	d.Service = &identity.Service{Store: people.NewIdentities(db), Users: account.NewUsers(db),
		Options: dropdowns, Values: live.Set, Changes: admin.Changes{Commit: db, Now: now}, Ring: ring, Accounts: 2,
		Hashes: func(n string) []string { return []string{"new " + n, "old " + n} },
		Tries:  password.NewGuards(account.NewPasswordGuards(db), db, password.Limit(3, 15*time.Minute), now),
		Refresh: func(_ context.Context, u user.User, sent session.Presented) (string, error) {
			if d.expired {
				return "", fault.New(fault.TokenRevoked, "the session has ended")
			}
			return "token of " + u.FullName() + " in " + sent.SessionID, nil
		}}
	return d
}

func (d *desk) Verify(_ context.Context, p identity.Person) (bool, error) {
	d.asked = append(d.asked, p)
	return !d.denies && d.trouble == nil, d.trouble
}

// choices are the first options of each group.
func choices() [5]identity.Choice {
	return [5]identity.Choice{{OptionID: 1}, {OptionID: 7}, {OptionID: 14}, {OptionID: 19}, {OptionID: 23}}
}

func request() identity.Request {
	return identity.Request{Session: session.Presented{SessionID: "s1"}, Info: identity.Info{Choices: choices()},
		Person: identity.Person{Number: number, Name: " Ayşe ", SecondName: "Nur  Su", Surname: "Yılmaz",
			BirthDate: "01.05.1990"}}
}

// confirm confirms a user; edit changes the request.
func (d *desk) confirm(userID string, edit func(*identity.Request)) (identity.Confirmed, error) {
	r := request()
	edit(&r)
	return d.Confirm(d.t.Context(), audit.By{UserID: userID}, r)
}

func as(*identity.Request) {}

func (d *desk) user(id string) user.User {
	d.t.Helper()
	u, err := d.Users.Get(d.t.Context(), id)
	storetest.Must(d.t, err)
	return u
}

// change changes columns of an account.
func (d *desk) change(id, columns string, values ...any) {
	d.t.Helper()
	persistencetest.Exec(d.t, d.db, "UPDATE users SET "+columns+" WHERE id = '"+id+"'", values...)
}

// Each part of a request is validated on its own, and every invalid field is named.
func TestRequestIsValidated(t *testing.T) {
	d := newDesk(t)
	for want, edits := range map[string][]func(*identity.Request){
		"userIdentityNumber": {
			func(r *identity.Request) { r.Person.Number = "1000000014" },
			func(r *identity.Request) { r.Person.Number = "100000001466" },
			func(r *identity.Request) { r.Person.Number = "00000000146" },
			func(r *identity.Request) { r.Person.Number = "1000000014a" },
			func(r *identity.Request) { r.Person.Number = "10000000147" },
			func(r *identity.Request) { r.Person.Number = "10000000156" },
			func(r *identity.Request) { r.Person.Number = "12000000146" },
		},
		"name": {func(r *identity.Request) { r.Person.Name = " " },
			func(r *identity.Request) { r.Person.Name = "a\u202eb" }},
		"surname": {func(r *identity.Request) { r.Person.Surname = "" },
			func(r *identity.Request) { r.Person.Surname = "a\x00b" }},
		"secondName": {func(r *identity.Request) { r.Person.SecondName = "\u200b" }},
		"birthDate": {
			func(r *identity.Request) { r.Person.BirthDate = "1899-12-31" },
			func(r *identity.Request) { r.Person.BirthDate = "2026-05-02" },
			func(r *identity.Request) { r.Person.BirthDate = "05/01/1990" },
			func(r *identity.Request) { r.Person.BirthDate = "" },
		},
		"additionalInfo.sourceOfFundingId":         {func(r *identity.Request) { r.Info.Choices[1].OptionID = 1 }},
		"additionalInfo.estimatedMonthlyDWCountId": {func(r *identity.Request) { r.Info.Choices[4].OptionID = 999 }},
		"userIdentityNumber name additionalInfo.purposeOfTransactionId": {func(r *identity.Request) {
			r.Person.Number, r.Person.Name, r.Info.Choices[0].OptionID = "", "", 0
		}},
	} {
		for _, edit := range edits {
			_, err := d.confirm("u1", edit)
			storetest.WantsFields(t, err, want)
		}
	}
	for _, date := range []string{"1900-01-01", "2026-05-01", " 1990-05-01 "} {
		if _, err := d.confirm("u2", func(r *identity.Request) { r.Person.BirthDate = date }); err != nil {
			t.Errorf("born on %q: %v", date, err)
		}
	}
	if got := d.user("u1"); got.Name != "" || got.IdentityHash != "" {
		t.Errorf("a refused request changed the account: %+v", got)
	}
	_, err := d.confirm("nobody", as)
	storetest.Wants(t, err, fault.RecordNotFound)
}

// The AML status, the number of accounts and a confirmed identity are checked before anything is written.
func TestAccountIsChecked(t *testing.T) {
	d := newDesk(t)
	d.change("u0", "aml_status = 'risky'")
	_, err := d.confirm("u0", as)
	storetest.Wants(t, err, fault.Forbidden)
	for _, id := range []string{"u1", "u2"} {
		_, err := d.confirm(id, as)
		storetest.Must(t, err)
	}
	_, err = d.confirm("u3", as)
	storetest.Wants(t, err, fault.RecordLimitReached)
	d.change("u2", "identity_hash = ?", "old "+number)
	_, err = d.confirm("u3", as)
	storetest.Wants(t, err, fault.RecordLimitReached)
	_, err = d.confirm("u1", as) // the user's own account does not count
	storetest.Must(t, err)

	d.change("u1", "kyc_confirm = ?", user.ManuelApproved)
	for name, edit := range map[string]func(*identity.Request){
		"number": func(r *identity.Request) { r.Person.Number = other },
		"name":   func(r *identity.Request) { r.Person.Surname = "Kaya" },
		"date":   func(r *identity.Request) { r.Person.BirthDate = "1990-05-02" },
	} {
		if _, err := d.confirm("u1", edit); fault.CodeOf(err) != fault.InvalidState {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := d.confirm("u1", func(r *identity.Request) { r.Person.Surname = "YILMAZ" }); err != nil {
		t.Errorf("the same person: %v", err)
	}
	d.change("u4", "kyc_confirm = ?", user.ManuelApproved) // without a hash the person cannot be compared
	if _, err := d.confirm("u4", func(r *identity.Request) { r.Person.Number = other }); err != nil {
		t.Errorf("approved without a number: %v", err)
	}
	d.change("u4", "kyc_confirm = ?", user.WaitingApproval)
	rename := func(r *identity.Request) { r.Person.Surname, r.Person.Number = "Kaya", other }
	if _, err := d.confirm("u4", rename); err != nil {
		t.Errorf("not approved yet: %v", err)
	}
}

// An account at risk that the operator ignores is confirmed.
func TestIgnoredAMLStatus(t *testing.T) {
	d := newDesk(t)
	d.change("u0", "aml_status = 'risky'")
	persistencetest.Exec(t, d.db, `UPDATE parameter SET json = '{"ignoredUsers":["u0"]}' WHERE code = 'AMLCONTROL'`)
	live := parameter.NewCache(kit.NewParameters(d.db))
	storetest.Must(t, live.Reload(t.Context()))
	d.Values = live.Set
	_, err := d.confirm("u0", as)
	storetest.Must(t, err)
}

// The national register decides if the request calls for it, and the failures of each user are limited.
func TestRegister(t *testing.T) {
	d := newDesk(t)
	ask := func(r *identity.Request) { r.Register = true }
	_, err := d.confirm("u0", ask)
	if storetest.Wants(t, err, fault.Unavailable); d.user("u0").Name != "" || d.acts(0) != "" {
		t.Errorf("without a register: %+v, %s", d.user("u0"), d.acts(0))
	}
	d.Dev = true
	if _, err := d.confirm("u0", ask); err != nil || d.acts(0) != "IDENTITY_CONFIRM|u0|u0|u0|by the check digits" {
		t.Errorf("without a register: %v, %s", err, d.acts(0))
	}
	d.Registry, d.Dev = d, false
	if _, err := d.confirm("u0", as); err != nil || len(d.asked) != 0 {
		t.Errorf("%v, asked %d times", err, len(d.asked))
	}
	if _, err := d.confirm("u0", ask); err != nil || len(d.asked) != 1 || d.asked[0].BirthYear() != 1990 ||
		d.acts(2) != "IDENTITY_CONFIRM|u0|u0|u0|by the national register" {
		t.Errorf("%v, asked %d times, %s", err, len(d.asked), d.acts(2))
	}
	if kept, err := d.Store.Kept(t.Context(), "u0"); err != nil || !kept.Registered {
		t.Errorf("%+v, %v", kept, err)
	}
	d.denies = true
	for range 3 {
		c, err := d.confirm("u1", ask)
		if err != nil || c.Token != "" || d.user("u1").Name != "" {
			t.Errorf("denied: %+v, %v", c, err)
		}
	}
	if got := d.acts(3); got != "IDENTITY_CONFIRM|u1|u1|u1|denied by the national register|refused" {
		t.Errorf("%s", got)
	}
	asked := len(d.asked)
	_, err = d.confirm("u1", ask)
	if storetest.Wants(t, err, fault.RateLimited); len(d.asked) != asked {
		t.Error("asked beyond the bound")
	}
	d.denies, d.trouble = false, fault.New(fault.Unavailable, "away")
	for range 5 { // a call without a result does not count
		_, err := d.confirm("u2", ask)
		storetest.Wants(t, err, fault.Unavailable)
	}
	d.trouble = nil
	for range 5 {
		if _, err := d.confirm("u2", ask); err != nil {
			t.Errorf("a right person: %v", err)
		}
	}
}

func (d *desk) acts(n int) string {
	d.t.Helper()
	acts := persistencetest.Acts(d.t, d.db)
	if n >= len(acts) {
		return ""
	}
	return acts[n]
}

// A session that has ended confirms nothing, and neither does an account that reached a limit meanwhile.
func TestConfirmIsOneTransaction(t *testing.T) {
	d := newDesk(t)
	d.expired = true
	_, err := d.confirm("u1", as)
	storetest.Wants(t, err, fault.TokenRevoked)
	if n, err := d.NumberOf(t.Context(), "u1"); n != "" || err != nil || d.user("u1").Name != "" || d.acts(0) != "" {
		t.Errorf("%q, %v, %+v, %s", n, err, d.user("u1"), d.acts(0))
	}
	d.expired = false
	d.Registry = meanwhile(func() { d.change("u1", "aml_status = 'risky'") })
	_, err = d.confirm("u1", func(r *identity.Request) { r.Register = true })
	storetest.Wants(t, err, fault.Forbidden)
	d.Registry = nil
}

// meanwhile is a register that runs a function during its call.
type meanwhile func()

func (m meanwhile) Verify(context.Context, identity.Person) (bool, error) { m(); return true, nil }
