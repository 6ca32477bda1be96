package ratelimit_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
)

// waiting is a client that waits or has gone.
type waiting bool

func (w waiting) Waits() bool { return bool(w) }

// A client waits until its context has ended or the client itself has gone; one that is unknown waits.
func TestClientOfContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want bool
	}{
		"unknown": {t.Context(), true}, "waits": {ratelimit.WithClient(t.Context(), waiting(true)), true},
		"has gone":          {ratelimit.WithClient(t.Context(), waiting(false)), false},
		"the context ended": {ratelimit.WithClient(ended, waiting(true)), false}, "unknown and ended": {ended, false},
	} {
		if got := ratelimit.Waits(c.ctx); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A partition holds one window for each key, and none after it was cleared. Its keys count toward the bound of a rule.
func TestPartitionOfTable(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	table := ratelimit.NewTable(func() time.Time { return now })
	one := ratelimit.Key{Rule: "r", Name: "a"}
	other := one
	for n := 0; other == one || other.Partition() != one.Partition(); n++ {
		other.Name = string(rune('b' + n))
	}
	before := table.Instant()
	now = now.Add(time.Second)
	if d := table.Instant() - before; d != int64(time.Second) {
		t.Errorf("the clock went on by %v", time.Duration(d))
	}
	table.WithPartition(one.Partition(), func(p *ratelimit.Partition) {
		if p.Len() != 0 || p.Get(one) != nil {
			t.Errorf("%d windows in a new partition", p.Len())
		}
		w := p.GetOrCreate(one)
		if w == nil || p.GetOrCreate(one) != w || p.Get(one) != w || p.GetOrCreate(other) == w || p.Len() != 2 {
			t.Errorf("%d windows", p.Len())
		}
		keys := slices.Collect(p.Keys())
		if len(keys) != 2 || !slices.Contains(keys, one) || !slices.Contains(keys, other) {
			t.Errorf("%v", keys)
		}
		p.Clear()
		if p.Len() != 0 || p.Get(one) != nil {
			t.Errorf("%d windows after the end of all", p.Len())
		}
		if p.GetOrCreate(one) == nil || p.Len() != 1 {
			t.Error("a cleared partition takes no window")
		}
	})
}

// A window counts with the wider key for a period and a little longer, and then alone.
func TestSharedWindow(t *testing.T) {
	var w ratelimit.Window
	if w.SharedAt(0) {
		t.Error("a new window is shared")
	}
	w.ShareFor(1000, time.Minute)
	if !w.SharedAt(1000+int64(time.Minute)) || w.SharedAt(1000+int64(time.Hour)) {
		t.Error("shared for another time than a minute")
	}
}

// Nodes of different versions agree on the partition of a key, because its owner counts it for all of them.
func TestPartitionsStayTheSame(t *testing.T) {
	for want, k := range map[int]ratelimit.Key{
		526: {}, 46: {Rule: "login"}, 103: {Rule: "login", Name: "u1"}, 777: {Rule: "login", Name: "u2"},
		446: {Rule: "login", IP: netip.MustParseAddr("192.0.2.1")},
		913: {Rule: "login", IP: netip.MustParseAddr("2001:db8:1:2::")},
	} {
		if got := k.Partition(); got != want {
			t.Errorf("%+v: partition %d, not %d", k, got, want)
		}
	}
	used := map[int]int{}
	for n := range 64 * ratelimit.Partitions {
		used[subscriber(uint32(n)).Partition()]++
	}
	for p := range ratelimit.Partitions {
		if n := used[p]; n < 24 || n > 128 {
			t.Errorf("partition %d has %d of the keys, and 64 are its share", p, n)
		}
	}
}
