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
	"castellan/domain/kit/integration"
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

// A status is stored with its remarks and its actor, whatever the caller set.
func TestSetKeepsTheActor(t *testing.T) {
	d := newDesk(t)
	for _, who := range []string{"boss", "clerk"} {
		d.now = d.now.Add(time.Second)
		status := map[string]user.Status{"boss": user.Blocked, "clerk": user.Active}[who]
		u, err := d.Set(t.Context(), audit.By{UserID: who}, standing.Standing{UserID: "ayse", Status: status,
			Description: "a letter", Reason: "REASON", By: "another"})
		storetest.Must(t, err)
		got, err := d.Store.Get(t.Context(), "ayse")
		storetest.Must(t, err)
		want := standing.Standing{UserID: "ayse", Status: status, Description: "a letter", Reason: "REASON", By: who,
			At: d.now}
		if got.At = got.At.UTC(); got != want || u.Status != status {
			t.Errorf("%+v, want %+v; %s", got, want, u.Status)
		}
	}
}

// A new status ends the sessions and locks the money; the same one changes only new remarks and new money.
func TestSetAppliesAStatusAsAWhole(t *testing.T) {
	d := newDesk(t)
	storetest.Must(t, d.money.Pay("ayse", "BTC/BTC", "2"))
	var published []string
	for _, c := range []struct {
		next   standing.Standing
		pay    string
		sv     int64
		locked string
		audit  string // detail; "": no row
		event  string // previous status; "": none
	}{
		{next: standing.Standing{Status: user.Active}, sv: 1, locked: "0"},
		{next: standing.Standing{Status: user.Closed, Reason: "moves"}, sv: 2, locked: "2",
			audit: "active -> closed, BTC; moves", event: "active"},
		{next: standing.Standing{Status: user.Closed, Reason: "moves"}, sv: 2, locked: "2"},
		{next: standing.Standing{Status: user.Closed}, sv: 2, locked: "2", audit: "closed -> closed"},
		{next: standing.Standing{Status: user.Closed, Description: "a letter"}, sv: 2, locked: "2",
			audit: "closed -> closed"},
		{next: standing.Standing{Status: user.Closed, Description: "a letter"}, pay: "3", sv: 2, locked: "5",
			audit: "closed -> closed, BTC"},
		{next: standing.Standing{Status: user.Active, Description: "a letter"}, sv: 2, locked: "0",
			audit: "closed -> active, BTC", event: "closed"},
	} {
		if c.pay != "" {
			storetest.Must(t, d.money.Pay("ayse", "BTC/BTC", c.pay))
		}
		before := len(d.details(standing.ActionStatus))
		c.next.UserID, d.now = "ayse", d.now.Add(time.Second)
		u, err := d.Set(t.Context(), audit.By{UserID: "boss"}, c.next)
		storetest.Must(t, err)
		stored, err := d.users.Get(t.Context(), "ayse")
		storetest.Must(t, err)
		if u.Status != c.next.Status || stored.Status != c.next.Status || stored.SV != c.sv {
			t.Errorf("%+v: %s, stored %s at session version %d", c.next, u.Status, stored.Status, stored.SV)
		}
		b, err := d.money.Balance(t.Context(), "ayse", d.money.Account("ayse", "BTC/BTC").Asset)
		if storetest.Must(t, err); b.Locked.String() != c.locked {
			t.Errorf("%+v: locked %s, want %s", c.next, b.Locked, c.locked)
		}
		rows := d.details(standing.ActionStatus)[before:]
		if c.audit == "" && len(rows) > 0 || c.audit != "" && (len(rows) != 1 || !like(rows[0], c.audit)) {
			t.Errorf("%+v: audit %q, want %q", c.next, rows, c.audit)
		}
		if c.event != "" {
			published = append(published, c.event+" -> "+string(c.next.Status))
		}
	}
	events, err := d.Claims.Events(t.Context(), integration.EventQuery{}, page.Query[integration.Place]{Limit: 10})
	storetest.Must(t, err)
	var got []string
	for _, e := range events.Records {
		got = append(got, e.Data["previousStatus"]+" -> "+e.Data["status"])
	}
	if !slices.Equal(got, published) {
		t.Errorf("published %q, want %q", got, published)
	}
}

// like reports whether a detail has the same beginning and end as a pattern, whose ", BTC" is any blockage.
func like(detail, pattern string) bool {
	before, after, money := strings.Cut(pattern, ", BTC")
	if !money {
		return detail == pattern
	}
	return strings.HasPrefix(detail, before+", ") && strings.HasSuffix(detail, " BTC"+after)
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
