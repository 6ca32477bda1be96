// Package gatewaytest is the contract of gateway.Store as a test. The persistence package runs it on both databases.
package gatewaytest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/access/gateway"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation of gateway.Store.
func Run(t *testing.T, open storetest.Open[gateway.Store]) {
	storetest.Run(t, open, storetest.Cases[gateway.Store]{"Routes": routes, "Unique": unique, "Grants": grants})
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func sample(path string) gateway.Route {
	return gateway.Route{Host: "shop.example", Method: "POST", Path: path, Mode: gateway.Guarded, ActionCode: "PAYOUT",
		Rows: []gateway.Row{{Key: "to", Label: "To", From: gateway.FromPath, Index: 1}}, Status: gateway.Active}
}

func routes(t *testing.T, s gateway.Store, _ commit.Committer) {
	a, b := sample("/a/*"), sample("/b/*")
	var err error
	a.ID, err = s.Add(t.Context(), a)
	storetest.Must(t, err)
	b.ID, err = s.Add(t.Context(), b)
	storetest.Must(t, err)
	storetest.Must(t, s.Change(t.Context(), b.ID, func(r gateway.Route) (gateway.Route, error) {
		r.Status = gateway.Trial
		return r, nil
	}))
	b.Status = gateway.Trial
	_, err = s.Add(t.Context(), a)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	storetest.Wants(t, s.Change(t.Context(), b.ID, func(r gateway.Route) (gateway.Route, error) {
		r.Path = a.Path
		return r, nil
	}), fault.RecordAlreadyExist)
	all, err := s.Routes(t.Context())
	storetest.Must(t, err)
	for i := range all {
		if all[i].UpdatedAt.IsZero() {
			t.Error("no time of the change")
		}
		all[i].UpdatedAt = time.Time{}
	}
	storetest.Same(t, all, []gateway.Route{a, b})
	storetest.Must(t, s.Remove(t.Context(), a.ID))
	storetest.Wants(t, s.Remove(t.Context(), a.ID), fault.RecordNotFound)
}

func unique(t *testing.T, s gateway.Store, _ commit.Committer) {
	if won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(int) error {
		_, err := s.Add(t.Context(), sample("/a"))
		return err
	}); won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
}

// A grant is used once, whatever the number of callers.
func grants(t *testing.T, s gateway.Store, c commit.Committer) {
	g := gateway.Grant{ID: id.New(start), UserID: "u1", MadeAt: start}
	_, err := s.Grant(t.Context(), g.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Must(t, c.Commit(t.Context(), gateway.Add{Grant: g}))
	got, err := s.Grant(t.Context(), g.ID)
	storetest.Must(t, err)
	storetest.Same(t, got, g)
	won := storetest.Race(t, 50, fault.GrantUsed, func(i int) error {
		err := c.Commit(t.Context(), gateway.Use{ID: g.ID, Use: fmt.Sprint("use", i), At: start})
		if errors.Is(err, commit.ErrFenced) {
			return fault.New(fault.GrantUsed, "used")
		}
		return err
	})
	if won != 1 {
		t.Errorf("%d of 50 used it", won)
	}
	if got, err = s.Grant(t.Context(), g.ID); err != nil || got.Use == "" || !got.UsedAt.Equal(start) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.Commit(t.Context(), gateway.Use{ID: "unknown", Use: "x", At: start}); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("an unknown grant: %v", err)
	}
	storetest.Must(t, s.Purge(t.Context(), start.Add(time.Minute)))
	_, err = s.Grant(t.Context(), g.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
}
