package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/gate/gateway"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	gatestore "castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

// Each field of a route has exact bounds, and all invalid fields are named.
func TestCheckOfRoutes(t *testing.T) {
	row := func(edit func(*gateway.Row)) func(*gateway.Route) {
		return func(r *gateway.Route) { edit(&r.Rows[0]) }
	}
	for name, c := range map[string]struct {
		edit   func(*gateway.Route)
		fields string // "": none
	}{
		"right":           {func(*gateway.Route) {}, ""},
		"a host":          {func(r *gateway.Route) { r.Host = "a.b-c" }, ""},
		"a long host":     {func(r *gateway.Route) { r.Host = strings.Repeat("a", 253) }, ""},
		"a longer host":   {func(r *gateway.Route) { r.Host = strings.Repeat("a", 254) }, "host"},
		"a port":          {func(r *gateway.Route) { r.Host = "a:1" }, "host"},
		"every method":    {func(r *gateway.Route) { r.Method = "*" }, ""},
		"a method":        {func(r *gateway.Route) { r.Method = "post" }, "method"},
		"no path":         {func(r *gateway.Route) { r.Path = "pay" }, "path rows"},
		"a long path":     {func(r *gateway.Route) { r.Path = "/pay/" + strings.Repeat("x", 507) }, ""},
		"a longer path":   {func(r *gateway.Route) { r.Path = "/pay/" + strings.Repeat("x", 508) }, "path"},
		"a part of *":     {func(r *gateway.Route) { r.Path = "/pay/x*" }, "path"},
		"a parameter":     {func(r *gateway.Route) { r.Path = "/pay/:id" }, "path"},
		"a colon inside":  {func(r *gateway.Route) { r.Path = "/pay/a:b" }, ""},
		"a code":          {func(r *gateway.Route) { r.ActionCode = "pay" }, "actionCode"},
		"no code":         {func(r *gateway.Route) { r.ActionCode = "" }, "actionCode"},
		"a session":       {func(r *gateway.Route) { r.Mode, r.ActionCode, r.Rows = gateway.Session, "", nil }, ""},
		"with a code":     {func(r *gateway.Route) { r.Mode, r.Rows = gateway.Session, nil }, "mode"},
		"with rows":       {func(r *gateway.Route) { r.Mode, r.ActionCode = gateway.Session, "" }, "mode"},
		"no key":          {row(func(r *gateway.Row) { r.Key = "" }), "rows"},
		"a long key":      {row(func(r *gateway.Row) { r.Key = strings.Repeat("ş", 64) }), ""},
		"a longer key":    {row(func(r *gateway.Row) { r.Key = strings.Repeat("ş", 65) }), "rows"},
		"a hidden key":    {row(func(r *gateway.Row) { r.Key = "a\u180e" }), "rows"},
		"a hidden label":  {row(func(r *gateway.Row) { r.Label = "a\u00ad" }), "rows"},
		"a reserved key":  {row(func(r *gateway.Row) { r.Key = "Time" }), "rows"},
		"a long label":    {row(func(r *gateway.Row) { r.Label = strings.Repeat("ş", 64) }), ""},
		"a longer label":  {row(func(r *gateway.Row) { r.Label = strings.Repeat("ş", 65) }), "rows"},
		"the first part":  {row(func(r *gateway.Row) { r.Index = 0 }), ""},
		"a part before":   {row(func(r *gateway.Row) { r.Index = -1 }), "rows"},
		"a part too many": {row(func(r *gateway.Row) { r.Index = 2 }), "rows"},
		"a name":          {row(func(r *gateway.Row) { r.From, r.Name = gateway.FromQuery, "a[0]" }), ""},
		"no name":         {row(func(r *gateway.Row) { r.From = gateway.FromHeader }), "rows"},
		"a key twice":     {func(r *gateway.Route) { r.Rows = append(r.Rows, r.Rows[0]) }, "rows"},
		"twenty rows":     {func(r *gateway.Route) { r.Rows = rows(20) }, ""},
		"a row too many":  {func(r *gateway.Route) { r.Rows = rows(21) }, "rows"},
	} {
		r := payment()
		c.edit(&r)
		if err := r.Check(); c.fields == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else {
			t.Run(name, func(t *testing.T) { storetest.WantsFields(t, err, c.fields) })
		}
	}
}

func rows(n int) (all []gateway.Row) {
	for i := range n {
		all = append(all, gateway.Row{Key: fmt.Sprint(i), From: gateway.FromPath})
	}
	return all
}

// inside is a store that is not readable after a commit.
type inside struct{ gateway.Store }

func (s inside) Routes(ctx context.Context) ([]gateway.Route, error) {
	if !commit.Inside(ctx) {
		return nil, fault.New(fault.Unavailable, "silent")
	}
	return s.Store.Routes(ctx)
}

// An administrator adds, changes and removes routes. The cache follows, and the audit shows their effects. A committed
// change is a success, also if the database is silent afterwards.
func TestAdminOfRoutes(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := gatestore.NewGateways(db)
	live, ctx, boss := gateway.NewCache(store), t.Context(), audit.By{UserID: "boss"}
	a := &gateway.Admin{Store: inside{store}, BuiltIn: func(code string) bool { return code == "LOGIN" },
		Action: func(_ context.Context, code string) (bool, error) { return code == "PAYOUT", nil },
		Changes: admin.Changes{Commit: db, Topic: change.Gateways, Follow: live.Follow,
			Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }}}
	r := payment()
	added, err := a.Add(ctx, boss, r)
	storetest.Must(t, err)
	request := paid(asSent)
	if m := live.Current().Match(request); m.Route == nil || m.Route.ID != added.ID || !live.Current().Starts("PAYOUT") ||
		live.Current().Starts("LOGIN") {
		t.Errorf("%+v", m)
	}
	_, err = a.Add(ctx, boss, r)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	r.Path, r.ActionCode = "/login", "LOGIN"
	r.Rows = nil
	_, err = a.Add(ctx, boss, r)
	storetest.WantsFields(t, err, "actionCode")
	r.ActionCode = "UNKNOWN"
	_, err = a.Add(ctx, boss, r)
	storetest.WantsFields(t, err, "actionCode")
	r.Mode, r.ActionCode, r.Path = gateway.Session, "", "x"
	_, err = a.Add(ctx, boss, r)
	storetest.WantsFields(t, err, "path")
	next, err := a.Change(ctx, boss, added.ID, func(r *gateway.Route) { r.Host = "shop.example" })
	if err != nil || next.Host != "shop.example" || next.ID != added.ID || next.UpdatedAt.IsZero() ||
		added.UpdatedAt.IsZero() {
		t.Errorf("%+v, %v", next, err)
	}
	if m := live.Current().Match(request); m.Route == nil || m.Route.Host != "shop.example" {
		t.Errorf("%+v", m)
	}
	_, err = a.Change(ctx, boss, added.ID, func(r *gateway.Route) { r.ActionCode = "LOGIN" })
	storetest.WantsFields(t, err, "actionCode")
	_, err = a.Change(ctx, boss, added.ID, func(r *gateway.Route) { r.Rows = nil })
	storetest.Must(t, err)
	_, err = a.Change(ctx, boss, added.ID, func(r *gateway.Route) { r.ActionCode = "UNKNOWN" })
	storetest.WantsFields(t, err, "actionCode")
	_, err = a.Change(ctx, boss, added.ID+1, func(*gateway.Route) {})
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Wants(t, a.Remove(ctx, boss, added.ID+1), fault.RecordNotFound)
	storetest.Must(t, a.Remove(ctx, boss, added.ID))
	if m := live.Current().Match(request); m.Route != nil {
		t.Errorf("%+v", m)
	}
	id := fmt.Sprint(added.ID)
	const route, row = `method "POST", path "/pay/*", mode "guarded", actionCode "PAYOUT", `,
		`[{"key":"k","label":"Order","from":"path","index":1}]`
	want := []string{"GUARD_ROUTE_ADD|boss||" + id + "|" + route + "rows " + row + `, status "ACTIVE"`,
		"GUARD_ROUTE_UPDATE|boss||" + id + `|host "" -> "shop.example"`,
		"GUARD_ROUTE_UPDATE|boss||" + id + "|rows -" + row,
		"GUARD_ROUTE_DELETE|boss||" + id + `|host "shop.example", ` + route + `status "ACTIVE"`}
	if acts := persistencetest.Acts(t, db); !slices.Equal(acts, want) {
		t.Errorf("%q", acts)
	}
}

// A route of an earlier version that breaks a newer rule can be switched off and changed elsewhere, and keeps no value
// that changes.
func TestChangeOfEarlierRoute(t *testing.T) {
	db := persistencetest.SQLite(t)
	a := &gateway.Admin{Store: gatestore.NewGateways(db), BuiltIn: func(string) bool { return true },
		Changes: admin.Changes{Commit: db, Now: time.Now}}
	r := payment()
	r.Path, r.ActionCode = "/:order/*", "LOGIN"
	r.Rows = []gateway.Row{{Key: "ip", Label: "a\ufe0f", From: gateway.FromPath, Index: 1}}
	id := storetest.Value(a.Store.Add(t.Context(), r))(t)
	change := func(edit func(*gateway.Route)) error {
		_, err := a.Change(t.Context(), audit.By{}, id, edit)
		return err
	}
	storetest.Must(t, change(func(r *gateway.Route) { r.Status = gateway.Inactive }))
	storetest.Must(t, change(func(r *gateway.Route) { r.Host = "shop.example" }))
	storetest.WantsFields(t, change(func(r *gateway.Route) { r.Path = "/pay" }), "rows")
	storetest.WantsFields(t, change(func(r *gateway.Route) { r.Path = "/:other/*" }), "path")
	storetest.WantsFields(t, change(func(r *gateway.Route) { r.Rows[0].Label = "b\ufe0f" }), "rows rows")
	storetest.WantsFields(t, change(func(r *gateway.Route) { r.ActionCode = "TOTP_SETUP" }), "actionCode")
}

// full is a store that has a number of routes.
type full struct {
	gateway.Store
	n int
}

func (f full) Routes(context.Context) ([]gateway.Route, error) {
	return make([]gateway.Route, f.n), nil
}

// There are at most two thousand routes.
func TestNumberOfRoutesIsBounded(t *testing.T) {
	db := persistencetest.SQLite(t)
	a := &gateway.Admin{BuiltIn: func(string) bool { return false },
		Action:  func(context.Context, string) (bool, error) { return true, nil },
		Changes: admin.Changes{Commit: db, Now: time.Now}}
	for n, want := range map[int]fault.Code{2000: fault.RecordLimitReached, 1999: ""} {
		a.Store = full{gatestore.NewGateways(db), n}
		if _, err := a.Add(t.Context(), audit.By{}, payment()); fault.CodeOf(err) != want && (want != "" || err != nil) {
			t.Errorf("%d: %v", n, err)
		}
	}
}
