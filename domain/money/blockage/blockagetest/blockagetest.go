// Package blockagetest tests the contract of blockage.Store and of its writes: persistence runs the tests on both
// databases.
package blockagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
)

// Run checks an implementation of blockage.Store. The currencies with the ids 1 and 2 and the codes BTC and ETH exist,
// and no blockage.
func Run(t *testing.T, open storetest.Open[blockage.Store]) {
	storetest.Run(t, open, storetest.Cases[blockage.Store]{
		"RoundTrip":    roundTrip,
		"List":         list,
		"Closures":     closures,
		"SavedInARace": savedInARace,
	})
}

var at = time.UnixMilli(1_700_000_000_000).UTC()

// sample is a blockage of the first user of usertest, as read from the store.
func sample(n int64) blockage.Blockage {
	return blockage.Blockage{ID: n, UserID: usertest.Sample(1).ID, CurrencyID: 1, TypeID: n,
		Amount: amount.Must(fmt.Sprint(n, ".000000000000000001")), Status: blockage.Active, Holds: 1, CreatedAt: at,
		Version: 1, CurrencyCode: "BTC", FullName: "Ayşe O'Neil ?"}
}

func add(t *testing.T, c commit.Committer, all ...blockage.Blockage) {
	t.Helper()
	for _, b := range all {
		storetest.Must(t, c.Commit(t.Context(), blockage.Add{Blockage: b}))
	}
}

func roundTrip(t *testing.T, s blockage.Store, c commit.Committer) {
	b := sample(1)
	b.SourceID, b.Description, b.DescriptionJSON = 5, "Court order '", []byte(`{"file":7}`)
	add(t, c, b)
	got, err := s.Get(t.Context(), 1)
	storetest.Must(t, err)
	storetest.Same(t, got, b)
	storetest.Wants(t, c.Commit(t.Context(), blockage.Add{Blockage: b}), fault.RecordAlreadyExist)
	_, err = s.Get(t.Context(), 2)
	storetest.Wants(t, err, fault.RecordNotFound)

	b.Amount, b.Status, b.Comment, b.Closure = amount.Must("3"), blockage.Released, "over", true
	b.Holds, b.UpdatedAt = 4, at
	storetest.Must(t, c.Commit(t.Context(), blockage.Save{Blockage: b}))
	b.Version = 2
	got, err = s.Get(t.Context(), 1)
	storetest.Must(t, err)
	storetest.Same(t, got, b)
	b.DeletedAt = at
	storetest.Must(t, c.Commit(t.Context(), blockage.Save{Blockage: b}))
	_, err = s.Get(t.Context(), 1)
	storetest.Wants(t, err, fault.RecordNotFound)
}

func list(t *testing.T, s blockage.Store, c commit.Committer) {
	a, b, d := sample(1), sample(2), sample(3)
	b.CurrencyID, b.Status, d.Status, d.DeletedAt = 2, blockage.Released, blockage.Released, at
	add(t, c, a, b, d)
	for _, x := range []struct {
		q    blockage.Query
		want string
	}{
		{blockage.Query{}, "[2 1]"}, {blockage.Query{UserID: &a.UserID}, "[2 1]"}, {blockage.Query{UserID: new("x")}, "[]"},
		{blockage.Query{CurrencyID: new(int64(2))}, "[2]"}, {blockage.Query{TypeIDs: []int64{1, 3}}, "[1]"},
		{blockage.Query{TypeIDs: []int64{2, 1}}, "[2 1]"}, {blockage.Query{Status: new(blockage.Active)}, "[1]"},
	} {
		got, err := s.List(t.Context(), x.q, page.Query[blockage.Place]{})
		storetest.Must(t, err)
		ids := []int64{}
		for _, r := range got.Records {
			ids = append(ids, r.ID)
		}
		if fmt.Sprint(ids) != x.want {
			t.Errorf("%+v: %v, want %s", x.q, ids, x.want)
		}
	}
	got, err := s.List(t.Context(), blockage.Query{},
		page.Query[blockage.Place]{After: &blockage.Place{ID: 2}, Count: true})
	storetest.Must(t, err)
	if storetest.Same(t, got.Records, []blockage.Blockage{a}); got.Total != 2 {
		t.Errorf("%d in all", got.Total)
	}
}

// A user has one active closure for each currency, even under concurrent calls.
func closures(t *testing.T, s blockage.Store, c commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
		b := sample(int64(i + 1))
		b.Closure = true
		return c.Commit(t.Context(), blockage.Add{Blockage: b})
	})
	if won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
	other, ended := sample(10), sample(11)
	other.CurrencyID, other.Closure, ended.Closure, ended.Status = 2, true, true, blockage.Released
	add(t, c, other, ended, sample(12))
	all, err := s.Closures(t.Context(), other.UserID)
	if storetest.Must(t, err); len(all) != 2 || all[0].ID != 10 || all[0].CurrencyCode != "ETH" {
		t.Errorf("%+v", all)
	}
}

// Of concurrent saves of one version one succeeds.
func savedInARace(t *testing.T, s blockage.Store, c commit.Committer) {
	add(t, c, sample(1))
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			b := sample(1)
			b.Comment = "x"
			switch err := c.Commit(t.Context(), blockage.Save{Blockage: b}); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, commit.ErrFenced):
				t.Error(err)
			}
		})
	}
	if wg.Wait(); won.Load() != 1 {
		t.Errorf("%d of 8 were saved", won.Load())
	}
}
