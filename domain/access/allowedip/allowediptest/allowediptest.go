// Package allowediptest is the contract of allowedip.Store and of the snapshot over it as a test.
package allowediptest

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/access/allowedip"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// Run runs the suite over an empty store.
func Run(t *testing.T, open storetest.Open[allowedip.Store]) {
	s, c := open(t)
	ctx, now := t.Context(), time.UnixMilli(1_700_000_000_000)
	network := func(text string) netip.Prefix {
		t.Helper()
		p, err := allowedip.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	live := allowedip.NewCache(s)
	allows := func(user, from string, want bool) {
		t.Helper()
		var a netip.Addr
		if from != "" {
			a = netip.MustParseAddr(from)
		}
		if live.Allows(user, a) != want {
			t.Errorf("%s from %q: %v", user, from, !want)
		}
	}
	reload := func() {
		t.Helper()
		if err := live.Reload(ctx); err != nil {
			t.Fatal(err)
		}
	}
	write := func(ws ...commit.Write) {
		t.Helper()
		if err := c.Commit(ctx, ws...); err != nil {
			t.Fatal(err)
		}
	}
	allow := func(user, text string) commit.Write {
		return allowedip.Allow{UserID: user, Network: network(text), At: now}
	}
	reload()
	allows("u1", "8.8.8.8", true)
	allows("u1", "", true)
	write(allow("u1", "192.0.2.7"), allow("u1", "2001:db8::/32"), allow("u1", "192.0.2.7"), allow("u2", "10.1.2.3/8"))
	write(allow("u1", "192.0.2.7"))
	allows("u1", "8.8.8.8", true) // not before the snapshot is reloaded
	reload()
	for from, want := range map[string]bool{"192.0.2.7": true, "192.0.2.8": false, "2001:db8:1::5": true,
		"2001:db9::": false, "8.8.8.8": false, "": false} {
		allows("u1", from, want)
	}
	allows("u2", "10.250.0.1", true)
	allows("u2", "192.0.2.7", false)
	allows("u3", "8.8.8.8", true)
	got, err := s.Networks(ctx, "u1")
	if err != nil || !slices.Equal(got, []netip.Prefix{network("192.0.2.7/32"), network("2001:db8::/32")}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.Networks(ctx, "u3"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	write(allowedip.Disallow{UserID: "u1", Network: network("2001:db8::/32")},
		allowedip.Disallow{UserID: "u1", Network: network("9.9.9.9")},
		allowedip.Disallow{UserID: "u2", Network: network("192.0.2.7")})
	reload()
	allows("u1", "2001:db8:1::5", false)
	write(allowedip.Disallow{UserID: "u1", Network: network("192.0.2.7")})
	reload()
	allows("u1", "8.8.8.8", true)
	allows("u2", "192.0.2.7", false)

	// Concurrent additions of one network store it once.
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := c.Commit(ctx, allow("u4", "198.51.100.0/24")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := s.Networks(ctx, "u4"); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
