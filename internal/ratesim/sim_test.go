package ratesim

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	seed   = flag.Uint64("seed", 1, "the first seed")
	seeds  = flag.Int("seeds", 6, "how many seeds")
	nodes  = flag.Int("nodes", 3, "how many nodes at first")
	keys   = flag.Int("keys", 60, "how many keys")
	limit  = flag.Int64("limit", 200, "the limit of each key")
	faults = flag.Int("faults", 5, "how many faults, one after the other")
	loss   = flag.Float64("loss", 0, "the share of lost messages")
	crowd  = flag.Bool("crowd", false, "stall nodes for a short time besides")
	off    = flag.Int("off", 0, "parts that are switched off, a sum of Part")
)

// A limit of N admits N while one node at a time is lost, frozen or moved, in whatever order the others learn of it. It
// admits fewer only if clients gave up, or if two members had counted (Merged). Every shard has one owner afterwards.
// With -off the test prints what goes wrong without a part of the protocol.
func TestLimitIsExactInSimulation(t *testing.T) {
	sum := Result{}
	for i := range *seeds {
		c := Config{Seed: *seed + uint64(i), Nodes: *nodes, Keys: *keys, Limit: *limit, Faults: *faults, Crowd: *crowd,
			Loss: *loss, Off: Part(*off)}
		r := Run(c)
		sum.Requests += r.Requests
		sum.Admitted += r.Admitted
		sum.Undecided += r.Undecided
		sum.Over += r.Over
		sum.Under += r.Under
		sum.Merged += r.Merged
		sum.Unsettled += r.Unsettled
		if *off == 0 && r.Over+r.Under+int64(r.Unsettled+r.Differ+r.Late) > 0 {
			if len(r.Wrong) > 0 {
				c.Watch = r.Wrong[0]
				t.Log(c.Watch, strings.Join(Run(c).Watched, "\n"))
			}
			t.Fatalf("seed %d: %d over, %d under, %d shards unsettled, %d keys differ, %d late: %q", c.Seed, r.Over, r.Under,
				r.Unsettled, r.Differ, r.Late, r.Story)
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
	}
	t.Logf("%d requests, %d admitted, %d undecided, %d over, %d under, %d merged, %d unsettled", sum.Requests,
		sum.Admitted, sum.Undecided, sum.Over, sum.Under, sum.Merged, sum.Unsettled)
}
