package ratelimit

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var orders = flag.Int("orders", 8, "how many orders of events TestLimitIsExactInAnyOrder tries")
var order = flag.Uint64("order", 0, "the only order that TestLimitIsExactInAnyOrder tries")

// A limit of 200 admits 200 when any one member at a time fails, and in whatever order the other members learn of it.
func TestLimitIsExactInAnyOrder(t *testing.T) {
	for i := range *orders {
		seed := uint64(i + 1)
		if *order != 0 {
			seed = *order
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { anyOrder(t, rand.New(rand.NewPCG(seed, 0))) })
		})
		if *order != 0 {
			return
		}
	}
}

func anyOrder(t *testing.T, rng *rand.Rand) {
	const limit, keys = 200, 60
	w := together(t)
	defer w.close()
	h := &history{w: w, t: t, rng: rng, members: three}
	w.pause = time.Duration(2+rng.IntN(14)) * time.Millisecond
	h.tr = w.run(keys, 16, limit, three...)
	calm := make(chan struct{})
	if h.crowded = rng.IntN(2) == 0; h.crowded {
		go h.crowd(rand.New(rand.NewPCG(rng.Uint64(), 0)), calm)
	}
	for range 1 + rng.IntN(3) {
		h.pause(0, 300*time.Millisecond)
		[]func(){h.join, h.leave, h.freeze, h.freeze, h.freeze, h.stumble, h.stumble, h.kill}[rng.IntN(8)]()
	}
	h.pause(0, time.Second)
	close(calm)
	time.Sleep(10 * time.Second)
	more, _, worst := h.tr.over(limit)
	shared := 0
	for id, n := range w.nodes {
		s := n.Stats()
		shared += int(s.Shared)
		t.Logf("%s: %+v", id, s)
	}
	t.Logf("%d over, worst %d, slowest %v, %d undecided", more, worst, h.tr.slowest, h.tr.undecided)
	if worst > limit+shared {
		t.Errorf("%d keys over the limit, at most %d", more, worst)
	}
}

// crowd stalls members for a short time now and then, as on a machine that is short of processors.
func (h *history) crowd(rng *rand.Rand, calm chan struct{}) {
	for {
		select {
		case <-calm:
			return
		case <-time.After(time.Duration(rng.Int64N(int64(400 * time.Millisecond)))):
		}
		h.w.mu.Lock()
		ids := slices.Sorted(maps.Keys(h.w.nodes))
		h.w.mu.Unlock()
		id := ids[rng.IntN(len(ids))]
		h.w.freeze(id)
		time.Sleep(time.Duration(rng.Int64N(int64(130 * time.Millisecond))))
		h.w.thaw(id, false)
	}
}

// history is a random sequence of events in a world.
type history struct {
	w       *world
	t       *testing.T
	rng     *rand.Rand
	tr      *traffic
	members []string
	started int
	crowded bool
}

func (h *history) pause(least, most time.Duration) {
	time.Sleep(least + time.Duration(h.rng.Int64N(int64(most-least))))
}

func (h *history) say(what ...any) { h.t.Log(append([]any{time.Now().Format("05.000")}, what...)...) }

// hear updates the views of members, in any order, one after the other.
func (h *history) hear(view []string, within time.Duration, ids ...string) {
	h.rng.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
	for _, id := range ids {
		h.pause(0, within)
		h.say(id, "sees", view)
		h.w.see(view, id)
	}
}

func (h *history) any() string { return h.members[h.rng.IntN(len(h.members))] }

func (h *history) join() {
	h.started++
	id := fmt.Sprint("n", h.started)
	h.say("join", id)
	h.w.start(id)
	h.members = append(without(h.members, ""), id)
	hears := slices.Clone(h.members)
	if h.rng.IntN(2) == 0 { // it sees one more member at a time, before the others do
		h.hear([]string{id, h.members[0]}, time.Millisecond, id)
		h.hear(h.members, 5*time.Millisecond, id)
		hears = without(hears, id)
	}
	h.hear(h.members, 30*time.Millisecond, hears...)
	h.tr.aim(h.members...)
	h.pause(300*time.Millisecond, time.Second)
}

func (h *history) leave() {
	if len(h.members) < 3 {
		return
	}
	id := h.any()
	h.say("leave", id)
	rest := without(h.members, id)
	h.tr.aim(rest...)
	h.hear(rest, 30*time.Millisecond, slices.Clone(h.members)...)
	h.pause(50*time.Millisecond, 100*time.Millisecond)
	h.w.kill(id)
	h.members = rest
	h.pause(300*time.Millisecond, time.Second)
}

func (h *history) kill() {
	if len(h.members) < 3 || h.crowded { // one member at a time may be lost
		return
	}
	h.pause(200*time.Millisecond, 300*time.Millisecond)
	id := h.any()
	h.say("kill", id)
	rest := without(h.members, id)
	h.tr.aim(rest...)
	h.w.kill(id)
	h.hear(rest, 40*time.Millisecond, slices.Clone(rest)...)
	h.members = rest
	h.pause(500*time.Millisecond, time.Second)
}

// stumble stalls a member for too short a time to be considered lost.
func (h *history) stumble() {
	id := h.any()
	h.say("stumble", id)
	h.w.freeze(id)
	h.pause(0, 500*time.Millisecond)
	h.w.thaw(id, false)
	h.say("goes on")
	h.pause(0, 500*time.Millisecond)
}

// freeze stalls a member until the others have given it up. When it is back, it drops its state, and they drop
// persisted actors, in any order.
func (h *history) freeze() {
	if len(h.members) < 3 {
		return
	}
	id, view := h.any(), h.members
	rest := without(view, id)
	h.say("freeze", id)
	h.w.freeze(id)
	h.pause(1600*time.Millisecond, 2500*time.Millisecond)
	h.hear(rest, 60*time.Millisecond, slices.Clone(rest)...)
	h.pause(100*time.Millisecond, 4*time.Second)
	h.w.thaw(id, true)
	h.say("goes on")
	// The events that the others see, each in its order: the member is back, and some actors have moved.
	rest = slices.Clone(rest)
	h.rng.Shuffle(len(rest), func(i, k int) { rest[i], rest[k] = rest[k], rest[i] })
	lapse := h.rng.IntN(len(rest) + 1)
	for i, other := range rest {
		if i == lapse {
			h.pause(0, 50*time.Millisecond)
			h.say("lapse", id)
			h.w.lapse(id)
		}
		h.pause(0, 50*time.Millisecond)
		h.say(other, "sees", view)
		h.w.see(view, other)
		if h.rng.IntN(2) == 0 {
			h.say(other, "drops what stands in rows")
			h.w.see(view, other) // it is notified of that, too
		}
	}
	if lapse == len(rest) {
		h.pause(0, 50*time.Millisecond)
		h.say("lapse", id)
		h.w.lapse(id)
	}
	h.hear(view, 50*time.Millisecond, slices.Clone(view)...)
	h.pause(300*time.Millisecond, time.Second)
}
