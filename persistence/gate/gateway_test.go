package gate_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/gate/gateway"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

func TestGatewayStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) gateway.Store { return gate.NewGateways(db) },
		storetest.Cases[gateway.Store]{"Routes": gatewayRoutes, "Unique": gatewayUniqueRoute, "Grants": gatewayGrants,
			"Spelled": gatewaySpelled}, "guard_route", "guard_grant", "guard_spelled")
}

func guardedRoute(path string) gateway.Route {
	return gateway.Route{Host: "shop.example", Method: "POST", Path: path, Mode: gateway.Guarded, ActionCode: "PAYOUT",
		Rows: []gateway.Row{{Key: "to", Label: "To", From: gateway.FromPath, Index: 1}}, Status: gateway.Active}
}

func gatewayRoutes(t *testing.T, s gateway.Store, _ commit.Committer) {
	a, b := persistencetest.Whole[gateway.Route](t), guardedRoute("/b/*")
	a.ID = storetest.Value(s.Add(t.Context(), a))(t)
	b.ID = storetest.Value(s.Add(t.Context(), b))(t)
	listed := func(want ...gateway.Route) {
		t.Helper()
		all := storetest.Value(s.Routes(t.Context()))(t)
		for i := range all {
			storetest.Equal(t, all[i].UpdatedAt.IsZero(), false, "no time of the change")
			all[i].UpdatedAt = want[i].UpdatedAt
		}
		storetest.Same(t, all, want)
	}
	listed(a, b)
	next := a
	next.ID, next.Path = b.ID, "/other"
	for _, want := range []gateway.Route{next, b} {
		storetest.Must(t, s.Change(t.Context(), b.ID, func(gateway.Route) (gateway.Route, error) { return want, nil }))
		listed(a, want)
	}
	storetest.Wants(t, storetest.Err(s.Add(t.Context(), a)), fault.RecordAlreadyExist)
	storetest.Wants(t, s.Change(t.Context(), b.ID, func(r gateway.Route) (gateway.Route, error) {
		r.Host, r.Method, r.Path = a.Host, a.Method, a.Path
		return r, nil
	}), fault.RecordAlreadyExist)
	listed(a, b)
	storetest.Must(t, s.Remove(t.Context(), a.ID))
	storetest.Wants(t, s.Remove(t.Context(), a.ID), fault.RecordNotFound)
}

func gatewayUniqueRoute(t *testing.T, s gateway.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist,
		func(int) error { return storetest.Err(s.Add(t.Context(), guardedRoute("/a"))) })
}

// A grant is used once, whatever the number of callers.
func gatewayGrants(t *testing.T, s gateway.Store, c commit.Committer) {
	g := gateway.Grant{ID: id.New(start), UserID: "u1", MadeAt: start}
	_, err := s.Grant(t.Context(), g.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Must(t, c.Commit(t.Context(), gateway.Add{Grant: g}))
	got := storetest.Value(s.Grant(t.Context(), g.ID))(t)
	storetest.Same(t, got, g)
	storetest.OneWins(t, 50, fault.GrantUsed, func(i int) error {
		return fenced(c.Commit(t.Context(), gateway.Use{ID: g.ID, Use: fmt.Sprint("use", i), At: start}))
	})
	if got, err = s.Grant(t.Context(), g.ID); err != nil || got.Use == "" || !got.UsedAt.Equal(start) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Is(t, c.Commit(t.Context(), gateway.Use{ID: "unknown", Use: "x", At: start}), commit.ErrFenced)
	storetest.Must(t, s.Purge(t.Context(), start.Add(time.Minute)))
	storetest.Wants(t, storetest.Err(s.Grant(t.Context(), g.ID)), fault.RecordNotFound)
}

// Counts of one hour add up, and are purged a day after it.
func gatewaySpelled(t *testing.T, s gateway.Store, _ commit.Committer) {
	first := gateway.Spelled{RouteID: 7, Reader: "Rails", Hour: start.Truncate(time.Hour), Sent: "pay.json", Count: 2}
	again, other, later := first, first, first
	again.Sent, again.Count = "pay.xml", 3
	other.Reader = "Windows"
	later.Hour = first.Hour.Add(time.Hour)
	for _, w := range []gateway.Spelled{first, again, other, later} {
		storetest.Must(t, s.Count(t.Context(), w))
	}
	first.Count = 5
	wants := func(since time.Time, want ...gateway.Spelled) {
		t.Helper()
		got := storetest.Value(s.Spelled(t.Context(), since))(t)
		storetest.Same(t, got, want)
	}
	wants(first.Hour, first, other, later)
	wants(first.Hour.Add(time.Millisecond), later)
	storetest.Must(t, s.Purge(t.Context(), first.Hour.Add(25*time.Hour)))
	wants(time.Time{}, first, other, later)
	storetest.Must(t, s.Purge(t.Context(), first.Hour.Add(25*time.Hour+time.Millisecond)))
	wants(time.Time{}, later)
}
