// Package ratesim is a simulation of the limiter of a cluster: the real state machine (actors/ratelimit/shard) on many
// nodes, under one seeded scheduler. A seed determines everything, so a fault that was found once can be repeated.
//
// The one idea: the machine has no clock and no network, so time is a number and a message is an event in a heap. The
// drivers of package actors/ratelimit are repeated here as callbacks, without goroutines (node.go, copies.go, move.go);
// their own tests are in that package. The oracle (judge.go) knows every admission that a client received. A limit of N
// must admit N: not one more, and not one fewer except for requests that their clients gave up.
//
// Start reading at Run.
package ratesim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math/rand/v2"
	"strconv"
	"time"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// Config is one simulation.
type Config struct {
	Seed        uint64
	Nodes, Keys int
	Limit       int64
	Faults      int     // joins, leaves, kills, freezes and stalls, one after the other
	Crowd       bool    // besides, nodes stall for up to 130 ms at any time, also two at once
	Loss        float64 // the share of messages that are lost, from 0 to 1
	Off         Part    // parts of the protocol that are switched off
	Watch       string  // a key whose events are recorded; "": none
}

// Part is a part of the protocol.
type Part int

// The parts, for a measurement of what each prevents.
const (
	Lease    Part = 1 << iota // a node that was silent for long decides nothing until it knows what changed
	Release                   // a new owner asks the former ones
	Grace                     // former owners are asked for 5 s after a change
	CatchUp                   // a replica that stalled asks what it missed before it decides
	Question                  // an owner asks the others before it goes on without its replica
	Confirm                   // a client gets its answer after the replica has the admission
	Names                     // a repeated request counts once
	Witness                   // a third node knows an admission that the replica does not confirm
)

// Result is what a simulation has found.
type Result struct {
	Requests, Admitted, Undecided int
	// Over counts admissions above the limit, or without knowledge of earlier ones. Under counts places that no client
	// received.
	Over, Under int64
	Differ      int      // keys whose replica has another count at the end
	Late        int      // requests without a decision some seconds after the last fault
	Merged      int64    // takeovers after which some admissions count twice
	Story       []string // the events that the scheduler chose
	Unsettled   int      // shards without exactly one owner at the end
	Events      int
	Trace       [32]byte // over all events
	Wrong       []string // keys with Over or Under
	Watched     []string // the last events of the key Watch
}

// world is the state of a simulation. Times are in nanoseconds.
type world struct {
	Config
	Result
	rng    *rand.Rand
	now    int64
	events events
	seq    uint64
	nodes  []*node
	names  []string
	byName map[string]int
	parts  []int // partitions that have keys
	keys   []key
	hash   hash.Hash
	pause  int64        // between two requests of a client
	calm   bool         // the last fault is over for some seconds
	over   bool         // no more requests
	merged map[int]bool // partitions in which two members had counted

	watched int // the partition of Watch; -1: none
}

type key struct {
	name     string
	hash     uint64
	part     int
	asked    int64
	admitted int64
	short    int64
	lost     int64 // requests without a decision: they may count although no client was admitted
}

func (w *world) demand(k *key) ratelimit.Demand {
	return ratelimit.Demand{Key: ratelimit.Key{Rule: "r", Name: k.name}, Limit: w.Limit, Period: time.Hour}
}

type event struct {
	at    int64
	seq   uint64
	node  int // -1: of the world
	timer bool
	do    func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// events is a heap: each event is earlier than the four that follow from its index.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	all, i := *h, len(*h)-1
	for ; i > 0 && e.before(&all[(i-1)/4]); i = (i - 1) / 4 {
		all[i] = all[(i-1)/4]
	}
	all[i] = e
}

func (h *events) pop() event {
	all, n := *h, len(*h)-1
	first, last, i := all[0], all[n], 0
	for 4*i+1 < n {
		next := 4*i + 1
		for k := next + 1; k < min(4*i+5, n); k++ {
			if all[k].before(&all[next]) {
				next = k
			}
		}
		if !all[next].before(&last) {
			break
		}
		all[i], i = all[next], next
	}
	all[i], all[n] = last, event{}
	*h = all[:n]
	return first
}

// Run simulates until the last fault is 10 s old.
func Run(c Config) Result {
	w := &world{Config: c, rng: rand.New(rand.NewPCG(c.Seed, 1)), byName: map[string]int{}, merged: map[int]bool{},
		hash: sha256.New(), watched: -1}
	w.keys = make([]key, 0, c.Keys)
	used := map[int]bool{}
	for i := range c.Keys {
		k := w.demand(&key{name: "k" + strconv.Itoa(i)}).Key
		w.keys = append(w.keys, key{name: k.Name, hash: k.Hash(), part: k.Partition()})
		if k.Name == c.Watch {
			w.watched = k.Partition()
		}
		if p := k.Partition(); !used[p] {
			used[p] = true
			w.parts = append(w.parts, p)
		}
	}
	w.pause = clients * (2e9 + int64(c.Faults)*2.5e9) / (int64(c.Keys) * c.Limit)
	var all []int
	for i := range c.Nodes {
		w.start()
		all = append(all, i)
	}
	for _, i := range all {
		w.nodes[i].see(all)
	}
	for i := range clients {
		w.after(-1, int64(i)*1e5, w.client)
	}
	if c.Crowd {
		w.after(-1, 1e9, w.crowd)
	}
	w.after(-1, 2e9, func() { w.fault(c.Faults) })
	for len(w.events) > 0 {
		w.next()
	}
	w.judge()
	copy(w.Trace[:], w.hash.Sum(nil))
	return w.Result
}

// next runs the earliest event. The events of a frozen node wait until it goes on, its timers last.
func (w *world) next() {
	e := w.events.pop()
	w.now = e.at
	if e.node >= 0 {
		n := w.nodes[e.node]
		if n.dead {
			return
		}
		if n.frozenUntil > w.now {
			if e.at = n.frozenUntil; e.timer {
				e.at++
			}
			w.seq++
			e.seq = w.seq
			w.events.push(e)
			return
		}
	}
	w.Events++
	e.do()
}

// after runs do at a node after a delay; -1: at no node.
func (w *world) after(at int, delay int64, do func()) {
	w.seq++
	w.events.push(event{w.now + delay, w.seq, at, false, do})
}

func (w *world) timer(at int, delay int64, do func()) {
	w.seq++
	w.events.push(event{w.now + delay, w.seq, at, true, do})
}

// note adds an event to the trace.
func (w *world) note(kind byte, values ...int64) {
	var b [64]byte
	text := append(b[:0], kind)
	text = binary.AppendVarint(text, w.now)
	for _, v := range values {
		text = binary.AppendVarint(text, v)
	}
	w.hash.Write(text)
}

func (w *world) say(what string, of ...any) {
	w.watch("%s %v", what, of)
	w.Story = append(w.Story, fmt.Sprintf("%.3f %s %v", float64(w.now)/1e9, what, of))
}

func (w *world) between(least, most time.Duration) int64 {
	return int64(least) + w.rng.Int64N(int64(most-least))
}

// living returns the nodes that clients call.
func (w *world) living() (all []int) {
	for _, n := range w.nodes {
		if !n.dead && !n.closed {
			all = append(all, n.id)
		}
	}
	return all
}

// clients is how many send requests. Together they ask for what the limits allow until about the last fault.
const clients = 16

func (w *world) client() {
	if w.over {
		return
	}
	all := w.living()
	n, k := w.nodes[all[w.rng.IntN(len(all))]], w.rng.IntN(len(w.keys))
	w.Requests++
	w.keys[k].asked++
	w.keys[k].lost++
	r := &request{node: n, key: k, name: w.rng.Uint64(), issued: w.now}
	w.after(n.id, 0, r.begin)
	w.timer(-1, 1+w.rng.Int64N(2*w.pause), w.client)
}

// clientTime is how long a client waits.
const clientTime = 1e9

// answer is the result of a request at its client.
func (w *world) answer(r *request, v shard.Verdict) {
	w.note('a', int64(r.node.id), int64(r.key), int64(v))
	k := &w.keys[r.key]
	if w.watched == k.part {
		w.watch("a client of %s gets %d for %x; %d were admitted before", r.node.name, v, r.id(), k.admitted)
	}
	switch v {
	case shard.Admitted:
		w.Admitted++
		k.admitted++
		k.lost--
	case shard.Refused:
		k.lost--
	case shard.Retry:
		if w.Undecided++; w.calm {
			w.Late++
		}
	}
}
