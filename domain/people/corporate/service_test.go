package corporate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/corporate"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

var (
	errDown = errors.New("the database is down")
	by      = audit.By{UserID: "op"}
)

// failing is a store of which one method fails.
type failing struct {
	corporate.Store
	method string
}

func (f *failing) err(method string, err error) error {
	if f.method == method {
		return errDown
	}
	return err
}

func (f *failing) Applications(ctx context.Context, q corporate.ApplicationQuery,
	p page.Query[corporate.Place]) (page.Of[corporate.Application], error) {
	all, err := f.Store.Applications(ctx, q, p)
	return all, f.err("Applications", err)
}

func (f *failing) AddApplication(ctx context.Context, a corporate.Application) (int64, error) {
	n, err := f.Store.AddApplication(ctx, a)
	return n, f.err("AddApplication", err)
}

func (f *failing) FindLink(ctx context.Context, u corporate.User) (corporate.User, error) {
	u, err := f.Store.FindLink(ctx, u)
	return u, f.err("FindLink", err)
}

func (f *failing) AddUser(ctx context.Context, u corporate.User) (int64, error) {
	n, err := f.Store.AddUser(ctx, u)
	return n, f.err("AddUser", err)
}

func (f *failing) SetApplicationStatus(ctx context.Context, n int64, status string) (corporate.Application, error) {
	a, err := f.Store.SetApplicationStatus(ctx, n, status)
	return a, f.err("SetApplicationStatus", err)
}

// accounts is a store of accounts of which one method fails.
type accounts struct {
	user.Store
	method string
}

func (a *accounts) Get(ctx context.Context, id string) (user.User, error) {
	u, err := a.Store.Get(ctx, id)
	if a.method == "Get" {
		err = errDown
	}
	return u, err
}

func (a *accounts) Hold(ctx context.Context, id string) (user.User, error) {
	u, err := a.Store.Hold(ctx, id)
	if a.method == "Hold" {
		err = errDown
	}
	return u, err
}

// office is the service with the accounts jane and john.
type office struct {
	corporate.Service
	t     *testing.T
	store *failing
	users *accounts
}

func newOffice(t *testing.T) *office {
	t.Helper()
	db := persistencetest.SQLite(t)
	hasher, err := password.NewHasher(password.HasherOptions{Slots: 1, Queue: 1,
		Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
	storetest.Must(t, err)
	o := &office{t: t, store: &failing{Store: people.NewCorporate(db)}, users: &accounts{Store: account.NewUsers(db)}}
	o.Service = corporate.Service{Store: o.store, Users: o.users, Hasher: hasher, Claims: kit.NewIntegration(db),
		Changes: admin.Changes{Commit: db, Now: time.Now, Lock: o.store.Lock}}
	for _, id := range []string{"jane", "john"} {
		u := user.New(id, time.Now())
		u.Email = id + "@example.com"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
	return o
}

const number, other = "1234567890", "4540536920" // valid tax numbers

// link is a link of an account; "" makes one.
func link(userID string) corporate.User {
	return corporate.User{UserID: userID, CorporateUserID: "acme", Status: "active", Role: "owner", CountryCode: "+90",
		PhoneNumber: "532 123 45 67", Email: new("ANN@acme.example")}
}

// account reads an account.
func (o *office) account(id string) user.User {
	o.t.Helper()
	u, err := o.users.Store.Get(o.t.Context(), id)
	storetest.Must(o.t, err)
	return u
}

// linked reads a link.
func (o *office) linked(n int64) corporate.User {
	o.t.Helper()
	all, err := o.store.Users(o.t.Context(), corporate.UserQuery{}, page.Query[corporate.Place]{})
	storetest.Must(o.t, err)
	for _, u := range all.Records {
		if u.ID == n {
			return u
		}
	}
	o.t.Fatalf("no link %d", n)
	return corporate.User{}
}

// An existing account is linked once, and gets the tax number. A repetition is the first result.
func TestLinkAnAccount(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	n, err := o.Insert(ctx, by, link("jane"), number)
	storetest.Must(t, err)
	if l := o.linked(n); l.UserID != "jane" || l.Made || l.CountryCode != "90" || l.PhoneNumber != "5321234567" ||
		*l.Email != "ann@acme.example" || o.account("jane").TaxNumber != number {
		t.Errorf("%+v, %+v", l, o.account("jane"))
	}
	for _, taxNumber := range []string{number, ""} {
		if again, err := o.Insert(ctx, by, link("jane"), taxNumber); err != nil || again != n {
			t.Errorf("a repetition: %d, %v", again, err)
		}
	}
	_, err = o.Insert(ctx, by, link("jane"), other)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	changed := link("jane")
	changed.Role = "clerk"
	_, err = o.Insert(ctx, by, changed, "")
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	_, err = o.Insert(ctx, by, link("missing"), "")
	storetest.Wants(t, err, fault.RecordNotFound)
	if m, err := o.Insert(ctx, by, link("john"), ""); err != nil || m == n || o.account("john").TaxNumber != "" {
		t.Errorf("%d, %v, %+v", m, err, o.account("john"))
	}
}

// A link without an account makes one that must reset its password.
func TestLinkMakesAnAccount(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	n, err := o.Insert(ctx, by, link(""), number)
	storetest.Must(t, err)
	l := o.linked(n)
	if u := o.account(l.UserID); !l.Made || u.Type != user.Corporate || !u.MustReset || u.TaxNumber != number ||
		u.Campaigns != (user.Campaigns{}) {
		t.Errorf("%+v, %+v", l, u)
	}
	if secret, err := o.users.Secret(ctx, l.UserID); err != nil || secret.Hash == "" {
		t.Errorf("%+v, %v", secret, err)
	}
	if again, err := o.Insert(ctx, by, link(""), number); err != nil || again != n {
		t.Errorf("a repetition: %d, %v", again, err)
	}
	_, err = o.Insert(ctx, by, link(""), other)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
}

// An invalid link names its fields, and adds nothing.
func TestLinkIsValidated(t *testing.T) {
	o := newOffice(t)
	long := strings.Repeat("ü", 65)
	for _, c := range []struct {
		edit      func(*corporate.User)
		taxNumber string
		fields    string
	}{
		{func(*corporate.User) {}, "1234567891", "taxNumber"},
		{func(u *corporate.User) { u.CorporateUserID, u.Status, u.Role = " ", long, "" }, "", "corporateUserId status role"},
		{func(u *corporate.User) { u.Email = new("x") }, "", "email"},
		{func(u *corporate.User) { u.Role, u.Email = long[:128], nil }, "", ""},
	} {
		u := link("jane")
		c.edit(&u)
		_, err := o.Insert(t.Context(), by, u, c.taxNumber)
		storetest.WantsFields(t, err, c.fields)
		if c.fields != "" {
			e := corporate.Edit{CorporateUserID: &u.CorporateUserID, Status: &u.Status, Role: &u.Role, Email: &u.Email,
				TaxNumber: &c.taxNumber}
			storetest.WantsFields(t, o.Change(t.Context(), by, 99, e), c.fields)
		}
	}
}

// A change edits the link, and the tax number of its account unless it is nil.
func TestChangeALink(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	n, err := o.Insert(ctx, by, link("jane"), number)
	storetest.Must(t, err)
	storetest.Must(t, o.Change(ctx, by, n, corporate.Edit{Role: new("clerk")}))
	if l := o.linked(n); l.Role != "clerk" || l.Status != "active" || o.account("jane").TaxNumber != number {
		t.Errorf("%+v", l)
	}
	for _, want := range []string{other, other, ""} {
		storetest.Must(t, o.Change(ctx, by, n, corporate.Edit{TaxNumber: &want}))
		if got := o.account("jane").TaxNumber; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	storetest.Wants(t, o.Change(ctx, by, 99, corporate.Edit{}), fault.RecordNotFound)
	storetest.Wants(t, o.Change(ctx, by, n, corporate.Edit{UserID: new("missing")}), fault.RecordNotFound)
	taxNumber := number
	storetest.Must(t, o.Change(ctx, by, n, corporate.Edit{UserID: new("john"), TaxNumber: &taxNumber}))
	if o.linked(n).UserID != "john" || o.account("john").TaxNumber != number || o.account("jane").TaxNumber != "" {
		t.Errorf("%+v, %+v", o.linked(n), o.account("john"))
	}
}

// An application is stored once for its external id, and its status changes.
func TestApplications(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	a := corporate.Application{ExternalID: "x1", CompanyName: "Acme", TaxNumber: "1", Status: "PENDING"}
	first, err := o.Report(ctx, by, a)
	storetest.Must(t, err)
	if first.ID == 0 || first.CompanyName != "Acme" || first.CreatedAt.IsZero() {
		t.Errorf("%+v", first)
	}
	for _, status := range []string{"APPROVED", "APPROVED"} {
		got, err := o.SetStatus(ctx, by, first.ID, status)
		if err != nil || got.Status != status || got.ID != first.ID {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if again, err := o.Report(ctx, by, a); err != nil || again.ID != first.ID || again.Status != "APPROVED" {
		t.Errorf("a repetition: %+v, %v", again, err)
	}
	a.TaxNumber = "2"
	if _, err := o.Report(ctx, by, a); !errors.Is(err, integration.ErrOtherBody) {
		t.Errorf("another application: %v", err)
	}
	_, err = o.Report(ctx, by, corporate.Application{})
	storetest.WantsFields(t, err, "externalId companyName taxNumber status")
	a.ExternalID = strings.Repeat("ü", 65)
	_, err = o.Report(ctx, by, a)
	storetest.WantsFields(t, err, "externalId")
	a.ExternalID = strings.Repeat("ü", 64)
	_, err = o.Report(ctx, by, a)
	storetest.Must(t, err)

	_, err = o.AddApplication(ctx, by, corporate.Application{CompanyName: strings.Repeat("ü", 201)})
	storetest.WantsFields(t, err, "companyName taxNumber status")
	n, err := o.AddApplication(ctx, by, corporate.Application{CompanyName: strings.Repeat("ü", 200), TaxNumber: "3",
		Status: "PENDING"})
	if got, _ := o.Application(ctx, n); err != nil || got.TaxNumber != "3" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = o.Application(ctx, 99)
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = o.SetStatus(ctx, by, 99, "APPROVED")
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = o.SetStatus(ctx, by, n, " ")
	storetest.WantsFields(t, err, "status")
}

// An error of a store is returned, and nothing is stored.
func TestStoreFails(t *testing.T) {
	o := newOffice(t)
	ctx := t.Context()
	n, err := o.Insert(ctx, by, link("jane"), number)
	storetest.Must(t, err)
	taxNumber := other
	insert := func(userID, taxNumber string) func() error {
		return func() error { _, err := o.Insert(ctx, by, link(userID), taxNumber); return err }
	}
	a := corporate.Application{ExternalID: "x1", CompanyName: "Acme", TaxNumber: "1", Status: "PENDING"}
	for _, c := range []struct {
		name            string
		store, accounts string
		do              func() error
	}{
		{"insert", "FindLink", "", insert("john", "")},
		{"insert", "AddUser", "", insert("john", "")},
		{"insert", "AddUser", "", insert("john", number)},
		{"insert", "AddUser", "", insert("", "")},
		{"insert", "", "Hold", insert("john", "")},
		{"insert again", "", "Get", insert("jane", number)},
		{"change", "", "Hold", func() error { return o.Change(ctx, by, n, corporate.Edit{TaxNumber: &taxNumber}) }},
		{"change", "", "Get", func() error {
			return o.Change(ctx, by, n, corporate.Edit{UserID: new("john")})
		}},
		{"report", "AddApplication", "", func() error { _, err := o.Report(ctx, by, a); return err }},
		{"report", "Applications", "", func() error { _, err := o.Report(ctx, by, a); return err }},
		{"add", "AddApplication", "", func() error { _, err := o.AddApplication(ctx, by, a); return err }},
		{"read", "Applications", "", func() error { _, err := o.Application(ctx, 1); return err }},
		{"status", "SetApplicationStatus", "", func() error { _, err := o.SetStatus(ctx, by, 1, "x"); return err }},
	} {
		o.store.method, o.users.method = c.store, c.accounts
		if err := c.do(); !errors.Is(err, errDown) {
			t.Errorf("%s without %s%s: %v", c.name, c.store, c.accounts, err)
		}
	}
	o.store.method, o.users.method = "", ""
	all, err := o.store.Users(ctx, corporate.UserQuery{}, page.Query[corporate.Place]{})
	if err != nil || len(all.Records) != 1 || o.account("jane").TaxNumber != number {
		t.Errorf("%+v, %v, %+v", all, err, o.account("jane"))
	}
}
