package ratelimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.ns.Load()) }

// With many concurrent callers and their keys in any order, no window exceeds its limit, and no decision deadlocks.
func TestManyAtOnce(t *testing.T) {
	table := ratelimit.NewTable(nil)
	keys := make([]ratelimit.Key, 12)
	for i := range keys {
		keys[i] = ratelimit.Key{Rule: "r", Name: fmt.Sprint(i)}
	}
	var counted [12]atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 2000 {
				var ds []ratelimit.Demand
				for _, i := range r.Perm(len(keys))[:1+r.IntN(4)] {
					ds = append(ds, ratelimit.Demand{Key: keys[i], Limit: int64(100 * (i + 1)), Period: time.Hour})
				}
				ok, err := table.Allow(context.Background(), ds, make([]ratelimit.Standing, len(ds)))
				if err != nil {
					t.Error(err)
				}
				for _, d := range ds {
					var i int
					fmt.Sscan(d.Key.Name, &i)
					if ok {
						counted[i].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	full := 0
	for i, k := range keys {
		s := make([]ratelimit.Standing, 1)
		d := ratelimit.Demand{Key: k, Limit: int64(100 * (i + 1)), Period: time.Hour}
		storetest.Must(t, table.Look(t.Context(), []ratelimit.Demand{d}, s))
		if s[0].Used != counted[i].Load() || s[0].Used > int64(100*(i+1)) {
			t.Errorf("key %d: %d counted of %d admitted, limit %d", i, s[0].Used, counted[i].Load(), 100*(i+1))
		}
		if s[0].Retry > 0 {
			full++
		}
	}
	if full == 0 {
		t.Error("no limit was reached")
	}
}

// A window without a counting admission is deleted; a look creates none.
func TestSweep(t *testing.T) {
	c := new(clock)
	l := ratelimit.NewTable(c.now)
	s := make([]ratelimit.Standing, 1)
	demand := func(i int, period time.Duration) []ratelimit.Demand {
		return []ratelimit.Demand{{Key: ratelimit.Key{Rule: "r", Name: fmt.Sprint(i)}, Limit: 1, Period: period}}
	}
	for i := range 1000 {
		if _, err := l.Allow(t.Context(), demand(i, time.Duration(i+1)*time.Second), s); err != nil {
			t.Fatal(err)
		}
		storetest.Must(t, l.Look(t.Context(), demand(-i-1, time.Second), s))
	}
	for _, at := range []time.Duration{0, time.Second - 1, time.Second, 500 * time.Second, 1000 * time.Second} {
		c.ns.Store(int64(at))
		l.Sweep()
		if want := 1000 - int(at/time.Second); l.Keys() != want {
			t.Errorf("after %v: %d keys, want %d", at, l.Keys(), want)
		}
	}
}

// A sweep visits no window that still counts: it reads the clock once for each partition.
func TestSweepVisitsNoCountingWindow(t *testing.T) {
	reads, at := 0, time.Unix(0, 0)
	table := ratelimit.NewTable(func() time.Time { reads++; return at })
	s := make([]ratelimit.Standing, 1)
	for n := range uint64(4 * ratelimit.SweepSteps) { // in one partition
		d := ratelimit.Demand{Key: ratelimit.Colliding(n), Limit: 100, Period: 2 * time.Hour}
		if n%2 == 0 {
			if admitted, err := table.Allow(t.Context(), []ratelimit.Demand{d}, s); !admitted || err != nil {
				t.Fatal(admitted, err)
			}
			continue
		}
		d.Period = time.Hour
		if got, open := table.Reserve(&d, 10, 2, int64(time.Hour), &s[0], &gate{closed: -1}); got != 10 || !open {
			t.Fatal(got, open)
		}
	}
	reads, at = 0, at.Add(30*time.Minute)
	if table.Sweep(); reads != ratelimit.Partitions || table.Keys() != 4*ratelimit.SweepSteps {
		t.Errorf("%d reads of the clock, %d keys", reads, table.Keys())
	}
}

// gate allows a table to decide about all partitions but one.
type gate struct {
	closed  int
	instant int64
	counted int64
}

func (g *gate) MayDecide(p int) bool { return p != g.closed }
func (g *gate) Counted(_, _ int, instant, count int64) {
	g.instant, g.counted = instant, g.counted+count
}

// A table decides and reserves only where its gate allows it, and reports its counts to the gate. A reservation
// counts at the instant at which it ends.
func TestGate(t *testing.T) {
	c := new(clock)
	table := ratelimit.NewTable(c.now)
	d := ratelimit.Demand{Key: ratelimit.Key{Rule: "r", Name: "a"}, Limit: 100, Period: time.Second}
	g, s := &gate{closed: d.Key.Partition()}, make([]ratelimit.Standing, 1)
	if admitted, open := table.Decide([]ratelimit.Demand{d}, s, g); admitted || open {
		t.Error("it decides behind a closed gate")
	}
	if n, open := table.Reserve(&d, 10, 2, 50, &s[0], g); n != 0 || open || table.Keys() != 0 || g.counted != 0 {
		t.Error("it reserves behind a closed gate")
	}
	g.closed = -1
	admitted, open := table.Decide([]ratelimit.Demand{d}, s, g)
	if !admitted || !open || g.counted != 1 || s[0].Used != 1 {
		t.Errorf("%v %v: %+v, %d counted", admitted, open, s[0], g.counted)
	}
	c.ns.Store(1000)
	if n, _ := table.Reserve(&d, 30, 2, 50, &s[0], g); n != 30 || s[0].Used != 31 || g.counted != 31 || g.instant != 1050 {
		t.Errorf("%d reserved: %+v, %d counted at %d", n, s[0], g.counted, g.instant)
	}
	if n, _ := table.Reserve(&d, 60, 2, 50, &s[0], g); n != 34 { // half of the remaining 69
		t.Errorf("%d reserved", n)
	}
	for at, used := range map[time.Duration]int64{time.Second: 64, time.Second + 1049: 64, time.Second + 1050: 0} {
		c.ns.Store(int64(at))
		if err := table.Look(t.Context(), []ratelimit.Demand{d}, s); err != nil || s[0].Used != used {
			t.Errorf("at %v: %+v, %v; want %d", at, s[0], err, used)
		}
	}
}

// A reservation takes at most its share of what is left of a key, and nothing of a key beyond the bound.
func TestReservationOfShares(t *testing.T) {
	for _, c := range []struct{ limit, most, share, want int64 }{{100, 10, 2, 10}, {100, 60, 2, 50}, {1, 10, 2, 0},
		{2, 10, 2, 1}, {100, 0, 2, 0}} {
		table, s := ratelimit.NewTable(new(clock).now), make([]ratelimit.Standing, 1)
		d := ratelimit.Demand{Key: ratelimit.Key{Rule: "r", Name: "a"}, Limit: c.limit, Period: time.Second}
		g := &gate{closed: -1}
		n, open := table.Reserve(&d, c.most, c.share, 50, &s[0], g)
		if n != c.want || !open || g.counted != c.want || s[0].Used != c.want || (table.Keys() == 1) != (c.want > 0) {
			t.Errorf("%+v: %d reserved, %+v, %d keys", c, n, s[0], table.Keys())
		}
	}
	table, s := ratelimit.NewTable(new(clock).now), make([]ratelimit.Standing, 1)
	table.Bound(1)
	first := ratelimit.Demand{Key: ipKey("192.0.2.1"), Limit: 100, Period: time.Hour}
	other := ratelimit.Demand{Key: ipKey("198.51.100.1"), Limit: 100, Period: time.Hour}
	g := &gate{closed: -1}
	if n, open := table.Reserve(&first, 10, 2, 50, &s[0], g); n != 10 || !open {
		t.Errorf("%d reserved, %v", n, open)
	}
	if n, open := table.Reserve(&other, 10, 2, 50, &s[0], g); n != 0 || !open || g.counted != 10 || table.Keys() != 1 {
		t.Errorf("%d reserved of a key beyond the bound, %v, %d keys", n, open, table.Keys())
	}
}
