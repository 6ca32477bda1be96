package ratesim

import (
	"flag"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seed   = flag.Uint64("seed", 1, "the first seed")
	seeds  = flag.Int("seeds", 12, "how many seeds, each without and with -crowd")
	nodes  = flag.Int("nodes", 3, "how many nodes at first")
	keys   = flag.Int("keys", 60, "how many keys")
	limit  = flag.Int64("limit", 200, "the limit of each key")
	faults = flag.Int("faults", 5, "how many faults, one after the other")
	loss   = flag.Float64("loss", 0, "the share of lost messages")
	crowd  = flag.Bool("crowd", false, "only with nodes that stall for a short time besides")
	off    = flag.Int("off", 0, "parts that are switched off, a sum of Part")
)

// A limit of N admits N while one node at a time is lost, frozen or moved, in whatever order the others learn of it. It
// also does while others stall for a short time besides. A node that admits knows every earlier admission that a client
// received. At the end the owner of each key counts what its clients received, and its replica counts the same. It may
// count more only for requests without an answer, or if two members had counted (Merged). Every shard has one owner and
// one replica. With -off the test prints what goes wrong without a part of the protocol.
func TestLimitIsExactInSimulation(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // the heap is small, and its garbage is most of the work
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(760 << 20))
	for _, crowded := range []bool{false, true} {
		if crowded || !*crowd {
			simulate(t, crowded)
		}
	}
}

func simulate(t *testing.T, crowded bool) {
	sum, began, wrong := Result{}, time.Now(), 0
	report := func(n int) {
		t.Logf("crowded %t, %d seeds in %v: %d events, %d requests, %d admitted, %d undecided, %d late, %d over, %d under, "+
			"%d merged, %d shards unsettled, %d keys differ, %d seeds wrong", crowded, n, time.Since(began).Round(time.Second),
			sum.Events, sum.Requests, sum.Admitted, sum.Undecided, sum.Late, sum.Over, sum.Under, sum.Merged, sum.Unsettled,
			sum.Differ, wrong)
	}
	for i := range *seeds {
		c := Config{Seed: *seed + uint64(i), Nodes: *nodes, Keys: *keys, Limit: *limit, Faults: *faults, Crowd: crowded,
			Loss: *loss, Off: Part(*off)}
		r := Run(c)
		sum.Events += r.Events
		sum.Requests += r.Requests
		sum.Admitted += r.Admitted
		sum.Undecided += r.Undecided
		sum.Late += r.Late
		sum.Over += r.Over
		sum.Under += r.Under
		sum.Merged += r.Merged
		sum.Unsettled += r.Unsettled
		sum.Differ += r.Differ
		if r.Over+r.Under+int64(r.Unsettled+r.Differ+r.Late) > 0 {
			wrong++
			if *off == 0 {
				if len(r.Wrong) > 0 {
					c.Watch = r.Wrong[0]
					t.Logf("%s:\n%s", c.Watch, strings.Join(Run(c).Watched, "\n"))
				}
				report(i + 1)
				t.Fatalf("seed %d, crowded %t: %d over, %d under, %d late, %d shards unsettled, %d keys differ: %q", c.Seed,
					crowded, r.Over, r.Under, r.Late, r.Unsettled, r.Differ, r.Story)
			}
		}
		if i == 0 {
			again := Run(c)
			c.Seed++
			other := Run(c)
			if again.Trace != r.Trace || other.Trace == r.Trace || !slices.Equal(again.Story, r.Story) {
				t.Error("the trace does not follow from the seed")
			}
			t.Logf("trace %x", r.Trace)
		}
		if (i+1)%100 == 0 && i+1 < *seeds {
			report(i + 1)
		}
	}
	report(*seeds)
}
