package password

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

var t0 = time.UnixMilli(1_700_000_000_000)

// try charges a wrong try and returns how long it must wait.
func try(t *testing.T, g *Guard, after time.Duration, prefix string) time.Duration {
	t.Helper()
	next, err := g.Charge(t0.Add(after), DefaultGuardRules(), prefix)
	if err == nil {
		*g = next
		return 0
	}
	e, _ := err.(*fault.Error)
	if e == nil || e.Code != fault.RateLimited || e.RetryAfter <= 0 {
		t.Fatalf("refused with %v", err)
	}
	storetest.Equal(t, len(next.Tries), len(g.Tries), "a refused try was counted")
	return e.RetryAfter
}

func TestTenTriesInFifteenMinutes(t *testing.T) {
	var g Guard
	for i := range 10 {
		storetest.Equal(t, try(t, &g, time.Duration(i)*time.Minute, "a"), 0, "try", i+1, "waits")
	}
	for after, want := range map[time.Duration]time.Duration{
		9 * time.Minute:                   6 * time.Minute,
		15*time.Minute - time.Millisecond: time.Millisecond,
	} {
		storetest.Equal(t, try(t, &g, after, "a"), want, "after", after, "the eleventh waits")
	}
	other := g
	storetest.Equal(t, try(t, &other, 9*time.Minute, "b"), 0, "another prefix waits")
	storetest.Equal(t, try(t, &g, 15*time.Minute, "a"), 0, "when the first try has left the window")
	storetest.Equal(t, try(t, &g, 15*time.Minute, "a"), time.Minute, "the window rolls: the second try's minute")
}

func TestSuccessesDoNotCount(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	for i := range 1000 {
		now := t0.Add(time.Duration(i) * time.Second)
		g = storetest.Value(g.Charge(now, r, "office"))(t).Refund(now, r, "office")
	}
	if len(g.Tries) != 0 || len(g.Good) != 1 {
		t.Errorf("%d tries, %d prefixes", len(g.Tries), len(g.Good))
	}
	for range 4 { // wrong ones between right ones still add up
		try(t, &g, time.Hour, "office")
		g, _ = g.Charge(t0.Add(time.Hour), r, "office")
		g = g.Refund(t0.Add(time.Hour), r, "office")
	}
	storetest.Equal(t, len(g.Tries), 4, "wrong tries, want 4")
}

func TestHundredTriesADay(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	g, _ = g.Charge(t0.Add(-29*24*time.Hour), r, "home")
	g = g.Refund(t0.Add(-29*24*time.Hour), r, "home")
	g, _ = g.Charge(t0.Add(-30*24*time.Hour), r, "old")
	g = g.Refund(t0.Add(-30*24*time.Hour), r, "old")
	for i := range 100 {
		storetest.Equal(t, try(t, &g, time.Duration(i)*time.Minute, fmt.Sprint("bot", i)), 0, "try", i+1, "waits")
	}
	storetest.Equal(t, try(t, &g, 100*time.Minute, "new"), 24*time.Hour-100*time.Minute, "a new prefix waits")
	if w := try(t, &g, 100*time.Minute, "old"); w == 0 {
		t.Error("a login of thirty days ago makes a prefix known")
	}
	for i := range 10 {
		storetest.Equal(t, try(t, &g, 100*time.Minute, "home"), 0, "try", i+1, "from a known prefix waits")
	}
	storetest.Equal(t, try(t, &g, 100*time.Minute, "home"), 15*time.Minute, "a known prefix has its own limit")
	// The prefix is known for 30 days, but not one millisecond longer.
	if !g.Knows(t0.Add(24*time.Hour-time.Millisecond), r, "home") || g.Knows(t0.Add(24*time.Hour), r, "home") {
		t.Error("a prefix is known for thirty days")
	}
	// The window now holds ten more tries, so the hundredth youngest is the eleventh.
	storetest.Equal(t, try(t, &g, 24*time.Hour+9*time.Minute+59*time.Second, "new"), time.Second, "a day after")
	storetest.Equal(t, try(t, &g, 24*time.Hour+10*time.Minute, "new"), 0, "a day after the eleventh")
}

func TestReturnTakesOneTryBack(t *testing.T) {
	var g Guard
	try(t, &g, 0, "a")
	try(t, &g, 1, "b")
	try(t, &g, 2, "a")
	before := fmt.Sprint(g)
	next := g.Return("a")
	storetest.Equal(t, fmt.Sprint(g), before, "a move changed its receiver")
	if len(next.Tries) != 2 || next.Tries[0].Prefix != "a" || next.Tries[1].Prefix != "b" || len(next.Good) != 0 {
		t.Errorf("%+v", next)
	}
	storetest.Equal(t, len(next.Return("unknown").Tries), 2)
}

// The row of an account stays small whatever happens to it.
func TestGuardIsBounded(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	r.Total = 1 << 20
	for i := range 5000 {
		g, _ = g.Charge(t0.Add(time.Duration(i)), r, fmt.Sprint("p", i))
		if i%2 == 0 {
			g = g.Refund(t0.Add(time.Duration(i)), r, fmt.Sprint("p", i))
		}
	}
	if len(g.Tries) > maxTries || len(g.Good) > maxGood {
		t.Errorf("%d tries, %d prefixes", len(g.Tries), len(g.Good))
	}
	if g.Good[len(g.Good)-1].Prefix != "p4998" || g.Tries[len(g.Tries)-1].Prefix != "p4999" {
		t.Error("the newest were forgotten")
	}
}

// Another node's clock may be ahead. A wait is never longer than its window, and the order of instants does not
// matter.
func TestClocksDisagree(t *testing.T) {
	var g Guard
	for i := range 10 {
		try(t, &g, time.Duration(10-i)*time.Hour, "a")
	}
	storetest.Equal(t, try(t, &g, 0, "a"), 15*time.Minute, "waits")
	storetest.Equal(t, try(t, &g, time.Hour+15*time.Minute-time.Millisecond, "a"), time.Millisecond, "the oldest stays")
	storetest.Equal(t, try(t, &g, time.Hour+15*time.Minute, "a"), 0, "nine instants ahead and one that left")
}

func TestUntil(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	if !g.Until(r).Before(t0) {
		t.Error("an empty guard matters")
	}
	g, _ = g.Charge(t0, r, "a")
	if got := g.Until(r); !got.Equal(t0.Add(24 * time.Hour)) {
		t.Errorf("a try matters until %v", got)
	}
	g = g.Refund(t0, r, "a")
	if got := g.Until(r); !got.Equal(t0.Add(30 * 24 * time.Hour)) {
		t.Errorf("a known prefix matters until %v", got)
	}
}

// Limit counts one thing: the n-th try passes, the next one waits until the first is as old as the window. All n are
// remembered, however large n is.
func TestLimit(t *testing.T) {
	for _, n := range []int{1, 5, 1000} {
		r, g := Limit(n, 10*time.Minute), Guard{}
		for i := range n {
			g = storetest.Value(g.Charge(t0.Add(time.Duration(i)*time.Millisecond), r, ""))(t)
		}
		for _, c := range []struct {
			at   time.Duration
			code fault.Code
		}{{time.Minute, fault.RateLimited}, {10*time.Minute - time.Millisecond, fault.RateLimited}, {10 * time.Minute, ""}} {
			storetest.Wants(t, storetest.Err(g.Charge(t0.Add(c.at), r, "")), c.code, n, "and one more after", c.at)
		}
	}
}

var errDown = errors.New("the database is down")

// without is a store that cannot read the guard of one key.
type without struct {
	*rows
	key string
}

func (w without) Guard(ctx context.Context, key string) (Guard, error) {
	if key == w.key {
		return Guard{}, errDown
	}
	return w.rows.Guard(ctx, key)
}

// A guard that cannot be read admits no try: neither that of the account nor one of its former keys, whose tries count.
func TestGuardCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"u", "former"} {
			g, r := keeper()
			g.store = without{r, key}
			if a, err := g.Charge(t.Context(), "u", "p", "former"); !errors.Is(err, errDown) || a != nil {
				t.Errorf("%s: %v, %v", key, a, err)
			}
			if len(r.guards) != 0 || len(g.accounts) != 0 {
				t.Errorf("%s: stored %+v, %d accounts are remembered", key, r.guards, len(g.accounts))
			}
			g.store = r
			storetest.Must(t, storetest.Err(g.Charge(t.Context(), "u", "p", "former")))
		}
	})
}

// A client with a whole block of addresses does not close an account for others. One IPv6 /48 or IPv4 /24 adds twenty
// to the hundred, and then only this region is closed.
func TestOneRegionDoesNotCloseAccount(t *testing.T) {
	for name, prefix := range map[string]func(i int) string{
		"one /56 of IPv6": func(i int) string { return fmt.Sprintf("2001:db8:1:%x::/64", i) },
		"one /48 of IPv6": func(i int) string { return fmt.Sprintf("2001:db8:1:%x::/64", i<<8) },
		"one /24 of IPv4": func(i int) string { return fmt.Sprintf("203.0.113.%d/32", i) },
	} {
		var g Guard
		passed := 0
		for i := range 200 {
			if try(t, &g, time.Duration(i)*time.Minute, prefix(i)) == 0 {
				passed++
			}
		}
		storetest.Equal(t, passed, 20, name, "tries passed")
		for _, owner := range []string{"198.51.100.7/32", "2001:db8:2:7::/64"} {
			storetest.Equal(t, try(t, &g, 200*time.Minute, owner), 0, name, "the owner at a new place waits")
		}
		// The first of the twenty was at 0.
		storetest.Equal(t, try(t, &g, 24*time.Hour-time.Minute, prefix(250)), time.Minute, name, "its next try waits")
		storetest.Equal(t, try(t, &g, 24*time.Hour, prefix(250)), 0, name, "a day later it waits")
	}
}

// Five regions reach the total, and no try counts twice.
func TestFiveRegionsCloseAnAccount(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	g, _ = g.Charge(t0, r, "198.51.100.7/32")
	g = g.Refund(t0, r, "198.51.100.7/32")
	for region := range 5 {
		if g.Closed(t0, r) {
			t.Fatalf("closed after %d tries", len(g.Tries))
		}
		for i := range 20 {
			storetest.Equal(t, try(t, &g, 0, fmt.Sprintf("203.0.%d.%d/32", region, i)), 0, "try", i, "of region", region)
		}
	}
	if !g.Closed(t0, r) || g.Closed(t0.Add(24*time.Hour), r) {
		t.Error("a hundred tries close an account for a day")
	}
	storetest.Equal(t, try(t, &g, time.Hour, "203.0.9.9/32"), 23*time.Hour, "a new region waits")
	storetest.Equal(t, try(t, &g, time.Hour, "198.51.100.7/32"), 0, "the owner's own network waits")
}

// A known prefix may try for ever. Its tries count at most twenty, and do not displace the tries of others from the
// row.
func TestRegionTriesDoNotDisplaceOthers(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	g, _ = g.Charge(t0, r, "198.51.100.7/32")
	g = g.Refund(t0, r, "198.51.100.7/32")
	for region := range 4 {
		for i := range 20 {
			try(t, &g, 0, fmt.Sprintf("203.0.%d.%d/32", region, i))
		}
	}
	for i := range 700 { // ten in each quarter of an hour pass
		try(t, &g, time.Duration(i)*90*time.Second, "198.51.100.7/32")
	}
	if !g.Closed(t0.Add(18*time.Hour), r) {
		t.Errorf("four regions and the known one have 100 tries; the row has %d", len(g.Tries))
	}
	if len(g.Tries) > 120 {
		t.Errorf("the row keeps %d tries", len(g.Tries))
	}
}

// A known region does not close the account for other places either, however often it is wrong.
func TestKnownRegionDoesNotCloseAccount(t *testing.T) {
	var g Guard
	r := DefaultGuardRules()
	g, _ = g.Charge(t0, r, "198.51.100.7/32")
	g = g.Refund(t0, r, "198.51.100.7/32")
	for i := range 300 {
		at := time.Duration(i) * 90 * time.Second
		storetest.Equal(t, try(t, &g, at, "198.51.100.7/32"), 0, "its try", i, "waits")
		if g.Closed(t0.Add(at), r) || g.wait(t0.Add(at), r, "203.0.113.9/32") != 0 {
			t.Fatalf("closed for a new place after %d tries of a known one", i+1)
		}
	}
}
