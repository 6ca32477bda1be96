// Package passwordtest is the contract of password.GuardStore as a test. The persistence package runs it on both
// databases.
package passwordtest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

var now = time.UnixMilli(1_700_000_000_000).UTC()

// Run checks an implementation of password.GuardStore and the writes of the package.
func Run(t *testing.T, open storetest.Open[password.GuardStore]) {
	storetest.Run(t, open, storetest.Cases[password.GuardStore]{
		"RoundTrip":         roundTrip,
		"FenceUnderRace":    fenceUnderRace,
		"FirstRowUnderRace": firstRowUnderRace,
		"LimitUnderRace":    limitUnderRace,
		"Clear":             clearGuard,
		"Purge":             purge,
	})
}

func load(t *testing.T, s password.GuardStore, key string) password.Guard {
	t.Helper()
	g, err := s.Guard(t.Context(), key)
	storetest.Must(t, err)
	return g
}

func save(g password.Guard) password.SaveGuard {
	return password.SaveGuard{Guard: g, Until: g.Until(password.DefaultGuardRules())}
}

func roundTrip(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx, r := t.Context(), password.DefaultGuardRules()
	g := load(t, s, "?'key")
	if g.Key != "?'key" || g.Version != 0 || len(g.Tries)+len(g.Good) != 0 {
		t.Fatalf("nothing was saved, yet %+v", g)
	}
	for i, prefix := range []string{"203.0.113.9/32", "2001:db8:1:2::/64", ""} {
		next, err := g.Charge(now.Add(time.Duration(i)), r, prefix)
		storetest.Must(t, err)
		if i == 1 {
			next = next.Refund(now, r, prefix)
		}
		storetest.Must(t, c.Commit(ctx, save(next)))
		got := load(t, s, "?'key")
		next.Version = g.Version + 1
		if !reflect.DeepEqual(got, next) {
			t.Errorf("read back %+v, want %+v", got, next)
		}
		g = got
	}
	if other := load(t, s, "other"); other.Version != 0 {
		t.Errorf("another account: %+v", other)
	}
}

// The row holds exactly the acknowledged writes.
func fenceUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, save(load(t, s, "u"))))
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 100 {
		wg.Go(func() {
			g, err := s.Guard(ctx, "u")
			if err != nil {
				t.Error(err)
				return
			}
			g.Tries = append(g.Tries, password.Try{At: int64(i), Prefix: "p"})
			if err := c.Commit(ctx, save(g)); err == nil {
				won.Add(1)
			} else if !errors.Is(err, commit.ErrFenced) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g := load(t, s, "u"); won.Load() == 0 || len(g.Tries) != int(won.Load()) || g.Version != int64(1+won.Load()) {
		t.Errorf("%d writes, %d tries, version %d", won.Load(), len(g.Tries), g.Version)
	}
}

func firstRowUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			g := password.Guard{Key: "u", Tries: []password.Try{{At: int64(i), Prefix: "p"}}}
			if err := c.Commit(t.Context(), save(g)); err == nil {
				won.Add(1)
			} else if !errors.Is(err, commit.ErrFenced) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g := load(t, s, "u"); won.Load() != 1 || len(g.Tries) != 1 || g.Version != 1 {
		t.Errorf("%d first rows, %+v", won.Load(), g)
	}
}

// Nodes that share only the rows judge ten wrong tries and no more.
func limitUnderRace(t *testing.T, s password.GuardStore, c commit.Committer) {
	r := password.DefaultGuardRules()
	var nodes []*password.Guards
	for range 4 {
		nodes = append(nodes, password.NewGuards(s, c, r, func() time.Time { return now }))
	}
	var judged, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			a, err := nodes[i%4].Charge(t.Context(), "u", "p")
			switch fault.CodeOf(err) {
			case "":
				judged.Add(1)
				a.Wrong()
			case fault.RateLimited:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if judged.Load() != 10 || refused.Load() != 50 || len(load(t, s, "u").Tries) != 10 {
		t.Errorf("%d judged, %d refused, %d counted", judged.Load(), refused.Load(), len(load(t, s, "u").Tries))
	}
}

func clearGuard(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, password.ClearGuard{Key: "nobody"}))
	if g := load(t, s, "nobody"); g.Version != 0 {
		t.Errorf("clearing made a row: %+v", g)
	}
	g := password.Guard{Key: "u", Tries: []password.Try{{At: 1, Prefix: "p"}}, Good: []password.Good{{Prefix: "q", At: 1}}}
	storetest.Must(t, c.Commit(ctx, save(g), save(password.Guard{Key: "v", Tries: g.Tries})))
	stale := load(t, s, "u")
	storetest.Must(t, c.Commit(ctx, password.ClearGuard{Key: "u"}))
	if g := load(t, s, "u"); len(g.Tries) != 0 || len(g.Good) != 1 || g.Good[0].Prefix != "q" || g.Version != 2 {
		t.Errorf("after clearing %+v", g)
	}
	if err := c.Commit(ctx, save(stale)); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("a try that was being judged brought the old ones back: %v", err)
	}
	if g := load(t, s, "v"); len(g.Tries) != 1 {
		t.Errorf("another account was cleared: %+v", g)
	}
	for i, key := range []string{"u", "fresh"} { // with and without a row
		storetest.Must(t, c.Commit(ctx, password.ResetBy(key, "here", now)))
		if g := load(t, s, key); len(g.Tries) != 0 || len(g.Good) != 1 || g.Good[0].Prefix != "here" ||
			g.Version != int64(3-2*i) {
			t.Errorf("%s again: %+v", key, g)
		}
	}
	storetest.Must(t, s.Purge(ctx, now.Add(30*24*time.Hour)))
	if g := load(t, s, "fresh"); len(g.Good) != 1 {
		t.Errorf("a prefix that is known was purged: %+v", g)
	}
	storetest.Must(t, s.Purge(ctx, now.Add(30*24*time.Hour+time.Second)))
	if g := load(t, s, "fresh"); g.Version != 0 {
		t.Errorf("after 30 days there is still %+v", g)
	}
}

func purge(t *testing.T, s password.GuardStore, c commit.Committer) {
	ctx := t.Context()
	for i := range 5 {
		g := password.Guard{Key: fmt.Sprint("u", i),
			Tries: []password.Try{{At: now.Add(time.Duration(i) * time.Hour).UnixMilli(), Prefix: "p"}}}
		storetest.Must(t, c.Commit(ctx, save(g)))
	}
	storetest.Must(t, s.Purge(ctx, now.Add(26*time.Hour)))
	for i := range 5 {
		if g := load(t, s, fmt.Sprint("u", i)); (g.Version == 0) != (i < 2) {
			t.Errorf("the row of %d hours: %+v", i, g)
		}
	}
}
