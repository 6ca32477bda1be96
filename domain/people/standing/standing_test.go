package standing_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/people/standing"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// desk is the service over a database with the account ayse. Its clock is now.
type desk struct {
	*standing.Service
	*testing.T
	money *persistencetest.Money
	users user.Store
	now   time.Time
	// busy counts the changes of a parameter that still come too late.
	busy int
}

// late is the store of parameters of a desk.
type late struct {
	parameter.Store
	d *desk
}

func (l late) Save(ctx context.Context, p parameter.Parameter, object json.RawMessage) (parameter.Parameter, error) {
	if l.d.busy--; l.d.busy >= 0 {
		return p, fault.New(fault.InvalidState, "changed meanwhile")
	}
	return l.Store.Save(ctx, p, object)
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, now: time.UnixMilli(1_700_000_000_000).UTC()}
	clock := func() time.Time { return d.now }
	m := persistencetest.NewMoney(t, clock)
	m.User("ayse", func(*user.User) {})
	store, parameters := people.NewStandings(m.DB), kit.NewParameters(m.DB)
	d.money, d.users = m, account.NewUsers(m.DB)
	storetest.Must(t, m.DB.InTx(t.Context(), func(ctx context.Context) error { return parameter.Seed(ctx, parameters) }))
	live := parameter.NewCache(parameters)
	storetest.Must(t, live.Reload(t.Context()))
	d.Service = &standing.Service{Store: store, Users: d.users, Parameters: live, Ignored: late{parameters, d},
		ClosureType: 1, Hold: persistencetest.HoldQueued(clock),
		Administrators: permit.NewResources(m.DB), Claims: kit.NewIntegration(m.DB),
		Blockages: &blockage.Service{Store: money.NewBlockages(m.DB), Ledger: m.Ledger, Users: d.users,
			Currencies: m.Currencies, Now: clock},
		Changes: admin.Changes{Commit: m.DB, Now: clock, Lock: store.Lock}}
	return d
}

// details returns those of the audit rows of an action, in order.
func (d *desk) details(action string) (all []string) {
	d.Helper()
	rows, err := kit.NewAudit(d.money.DB).List(d.Context(), audit.Query{Action: action}, page.Query[audit.Place]{})
	storetest.Must(d.T, err)
	for _, r := range slices.Backward(rows.Records) {
		all = append(all, r.Detail)
	}
	return all
}

// ignored returns the accounts in the parameter AMLCONTROL.
func (d *desk) ignored() []string {
	d.Helper()
	all, err := d.Ignored.List(d.Context(), parameter.Query{Code: &parameter.AMLControl.Code})
	storetest.Must(d.T, err)
	var i parameter.Ignored
	storetest.Must(d.T, json.Unmarshal(all[0].JSON, &i))
	return i.IgnoredUsers
}

// D-AUTH-03: the last administrator keeps the status active. Accounts that are no active administrators are free.
func TestSetKeepsTheLastAdministrator(t *testing.T) {
	d := newDesk(t)
	for name, edit := range map[string]func(*user.User){
		"root": func(*user.User) {}, "closed": func(u *user.User) { u.Status = user.Closed },
		"demo": func(u *user.User) { u.Demo = true },
	} {
		d.money.User(name, func(u *user.User) { u.Roles = []string{user.RoleAdmin}; edit(u) })
	}
	set := func(name string, s user.Status) error {
		_, err := d.Set(t.Context(), audit.By{UserID: "boss"}, standing.Standing{UserID: name, Status: s})
		return err
	}
	storetest.Wants(t, set("root", "gone"), fault.InvalidField)
	storetest.Wants(t, set("unknown", user.Blocked), fault.RecordNotFound)
	storetest.Wants(t, set("root", user.Blocked), fault.InvalidState)
	storetest.Must(t, set("root", user.Active))
	storetest.Must(t, set("closed", user.Blocked))
	storetest.Must(t, set("demo", user.Blocked))
	storetest.Must(t, set("demo", user.Active))
	d.Dev = true // a demonstration account is an administrator now
	storetest.Must(t, set("root", user.Blocked))
	storetest.Wants(t, set("demo", user.Blocked), fault.InvalidState)
	storetest.Must(t, set("root", user.Active))
	d.Dev = false
	storetest.Must(t, set("closed", user.Active))
	storetest.Must(t, set("root", user.Blocked))
}

// Find and ConfirmAML survive four concurrent changes of the parameter, and fail at the fifth.
func TestChangesOfTheParameterAreRetried(t *testing.T) {
	d := newDesk(t)
	confirm := func() error {
		_, err := d.ConfirmAML(t.Context(), audit.By{UserID: "boss"}, "ayse")
		return err
	}
	find := func(externalID string) error {
		_, err := d.Find(t.Context(), audit.By{UserID: "service"}, standing.Finding{ExternalID: externalID, UserID: "ayse",
			Status: standing.Risky})
		return err
	}
	wants := func(status string, ignored ...string) {
		t.Helper()
		u, err := d.users.Get(t.Context(), "ayse")
		if storetest.Must(t, err); u.AMLStatus != status || !slices.Equal(d.ignored(), ignored) {
			t.Errorf("%s, ignored %q; want %s, %q", u.AMLStatus, d.ignored(), status, ignored)
		}
	}
	storetest.Must(t, find("f1"))
	d.busy = 5
	storetest.Wants(t, confirm(), fault.InvalidState)
	wants(standing.Risky)
	d.busy = 4
	storetest.Must(t, confirm())
	wants(user.NotRisky, "ayse")
	d.busy = 5
	storetest.Wants(t, find("f2"), fault.InvalidState)
	wants(user.NotRisky, "ayse")
	d.busy = 4
	storetest.Must(t, find("f2"))
	wants(standing.Risky)
	if got := d.details(standing.ActionFinding); len(got) != 2 {
		t.Errorf("audit %q", got)
	}
}

// A finding has a known status and an external id of at most 128 bytes.
func TestFindingIsValidated(t *testing.T) {
	f := standing.Finding{ExternalID: strings.Repeat("x", 129), Status: "sanctioned"}
	_, err := (&standing.Service{}).Find(t.Context(), audit.By{}, f)
	storetest.WantsFields(t, err, "externalId status")
}
