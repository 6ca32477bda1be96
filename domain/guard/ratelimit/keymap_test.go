package ratelimit_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
)

// A key is removed by the first Expire at or after its deadline, also one that was moved, after any pause. It is
// visited a few times in its life, and not in every round.
func TestKeysExpireByDeadline(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var m ratelimit.KeyMap[int64]
		now, next, added, visits, rounds := int64(0), 0, 0, 0, 0
		deadlines := map[ratelimit.Key]int64{}
		after := func() int64 { return now + r.Int64N(int64(1)<<(20+r.IntN(30))) } // up to 13 days
		for range 2000 {
			for range r.IntN(4) {
				k, at := ratelimit.Key{Rule: "r", Name: strconv.Itoa(next)}, after()
				next, added = next+1, added+1
				deadlines[k] = at
				*m.Add(k, at) = at
			}
			if r.IntN(3) == 0 {
				for k := range deadlines { // it is used again: the wheel learns that later
					deadlines[k] = max(deadlines[k], after())
					*m.Get(k) = deadlines[k]
					break
				}
			}
			now += r.Int64N(int64(1) << (25 + r.IntN(18))) // up to 2.4 hours
			rounds += m.Len()
			for more := true; more; {
				n := 0
				more = m.Expire(now, 3, func(k ratelimit.Key, v *int64) int64 {
					n++
					return *v
				})
				if visits += n; n > 3 {
					t.Fatalf("%d visits in one step", n)
				}
			}
			for k, at := range deadlines {
				if (m.Get(k) != nil) != (at > now) {
					t.Fatalf("seed %d at %v: %s with deadline %v is kept: %t", seed, time.Duration(now), k.Name,
						time.Duration(at), m.Get(k) != nil)
				}
				if at <= now {
					delete(deadlines, k)
				}
			}
			if m.Len() != len(deadlines) {
				t.Fatalf("%d keys, want %d", m.Len(), len(deadlines))
			}
		}
		if added == 0 || visits > 8*added || visits > rounds/4 {
			t.Errorf("seed %d: %d visits of %d keys; all keys in all rounds: %d", seed, visits, added, rounds)
		}
	}
}

// Keys with the same hash are separate, in any order of additions and removals, and cost no more than others: a list
// of so many keys would take minutes.
func TestKeysWithTheSameHash(t *testing.T) {
	const keys = 1 << 18
	var m ratelimit.KeyMap[uint64]
	prints := map[uint64]bool{}
	for n := range uint64(keys) {
		k := ratelimit.Colliding(n)
		if m.Get(k) != nil || k.Hash() != ratelimit.Colliding(0).Hash() {
			t.Fatalf("key %d: %v, hash %x", n, m.Get(k), k.Hash())
		}
		*m.Add(k, int64(n%3)<<40) = n
		prints[k.Fingerprint()] = true
	}
	seen := 0
	for range m.Keys() {
		seen++
	}
	if m.Len() != keys || seen != keys || len(prints) != keys {
		t.Errorf("%d keys, %d listed, %d fingerprints", m.Len(), seen, len(prints))
	}
	for round := range int64(3) {
		next := func(_ ratelimit.Key, n *uint64) int64 { return int64(*n%3) << 40 }
		for m.Expire(round<<40, 1000, next) {
		}
		for n := range uint64(keys) {
			if v := m.Get(ratelimit.Colliding(n)); (v != nil) != (int64(n%3) > round) || v != nil && *v != n {
				t.Fatalf("round %d: key %d is %v", round, n, v)
			}
		}
	}
	*m.Add(ratelimit.Colliding(1), 0) = 1
	if v := m.Get(ratelimit.Colliding(1)); v == nil || *v != 1 || m.Len() != 1 {
		t.Errorf("%v, %d keys", v, m.Len())
	}
}
