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
