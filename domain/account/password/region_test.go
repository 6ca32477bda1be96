package password

import (
	"fmt"
	"testing"
	"time"
)

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
		if passed != 20 {
			t.Errorf("%s: %d tries passed", name, passed)
		}
		for _, owner := range []string{"198.51.100.7/32", "2001:db8:2:7::/64"} {
			if w := try(t, &g, 200*time.Minute, owner); w != 0 {
				t.Errorf("%s: the owner at a new place waits %v", name, w)
			}
		}
		// The first of the twenty was at 0.
		if w := try(t, &g, 24*time.Hour-time.Minute, prefix(250)); w != time.Minute {
			t.Errorf("%s: its next try waits %v", name, w)
		}
		if w := try(t, &g, 24*time.Hour, prefix(250)); w != 0 {
			t.Errorf("%s: a day later it waits %v", name, w)
		}
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
			if w := try(t, &g, 0, fmt.Sprintf("203.0.%d.%d/32", region, i)); w != 0 {
				t.Fatalf("try %d of region %d waits %v", i, region, w)
			}
		}
	}
	if !g.Closed(t0, r) || g.Closed(t0.Add(24*time.Hour), r) {
		t.Error("a hundred tries close an account for a day")
	}
	if w := try(t, &g, time.Hour, "203.0.9.9/32"); w != 23*time.Hour {
		t.Errorf("a new region waits %v", w)
	}
	if w := try(t, &g, time.Hour, "198.51.100.7/32"); w != 0 {
		t.Errorf("the owner's own network waits %v", w)
	}
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
		if w := try(t, &g, at, "198.51.100.7/32"); w != 0 {
			t.Fatalf("its try %d waits %v", i, w)
		}
		if g.Closed(t0.Add(at), r) || g.wait(t0.Add(at), r, "203.0.113.9/32") != 0 {
			t.Fatalf("closed for a new place after %d tries of a known one", i+1)
		}
	}
}
