// Package ratelimit keeps the windows of rate limits over the nodes of a
// cluster, so that a limit of N admits N and not N per node (section 4.5,
// D-WAF-13).
//
// Every key is a virtual actor of one place: the ring gives each partition of
// the keys to one node, its owner, and what the owner counts is counted. It is
// asked by the nodes that have requests (their fronts), by a locked look when it
// is this node, and otherwise in batches that grow with the load. The member
// that would own the partition next, its stand-in, knows of an admission before
// the client does: when the owner dies, its stand-in goes on without a gap, and
// when it is silent, the stand-in decides for it. An owner whose stand-in has
// decided is told so by the stand-in itself, because its own admissions need the
// stand-in's word; it then takes over what the stand-in knows. So one node at a
// time may be lost or frozen, and no window holds one admission too many.
//
// When neither answers, a front decides alone within its share of the limit.
//
// Unlike the challenge and the user, a key has no mailbox and no goroutine: the
// windows of a partition are a table behind a lock, which costs a tenth. Start
// reading at Counter.Allow, then gate (who may decide), hold.go (how a partition
// comes and goes) and standin.go.
package ratelimit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/cluster"
	"castellan/domain/firewall"
	"castellan/domain/window"
)

// Cluster is what the counters need of the nodes; *cluster.Node is one.
type Cluster interface {
	Address() string
	Belongs() bool
	Place(kind, id string) (owner, next string)
	Former(kind, id string) []string
	Lost(member string) bool
	Drops() int64
	OnMove(tell func(moved func(kind, id string) bool))
	Serve(name string, r cluster.Receiver)
	Ask(ctx context.Context, within time.Duration, to, name string, question proto.Message) (proto.Message, error)
}

// Kind is what the partitions are called in the ring; their ids are numbers.
const Kind = "rates"

// How long is waited.
const (
	// silence is how long an owner may say nothing (D-WAF-13); then its stand-in is
	// asked, and when that says nothing either, the front decides within its share.
	silence = 75 * time.Millisecond
	// copyTime is how long an admission waits for the stand-in to know it, and again
	// to learn why it does not. Both fit into the patience of a front.
	copyTime = 30 * time.Millisecond
	// moveTime is how long a front looks for an owner while nodes that answer say
	// that it is another.
	moveTime = 600 * time.Millisecond
	// probeTime is how often one that was silent is tried again.
	probeTime = 25 * time.Millisecond
)

// Stats are counts since the start.
type Stats struct {
	Here, Elsewhere int64 // decisions by this node and by others, for its own requests
	Cached          int64 // refusals that were known here
	Leased          int64 // let in by what was counted beforehand
	Stood           int64 // decisions in the place of a silent owner
	Shared          int64 // decisions within this node's share, because nobody answered
	Batches, Asked  int64 // sent to owners, and the requests in them
	Copies, Copied  int64 // batches sent to stand-ins, and the admissions in them
	Pulled          int64 // partitions that were taken over from others
	Merged          int64 // and those of them in which two had counted, so that some may count twice
}

// Counter is the firewall's Counter on a node of a cluster.
type Counter struct {
	net   Cluster
	table *firewall.Local
	log   *slog.Logger
	self  string

	place atomic.Pointer[placement]
	roles []role // of the partitions; the table's locks guard them
	front [fronts]front

	mu    sync.Mutex // of changes of the placement
	drops int64
	ways  sync.Map // of *member, by id
	moves chan struct{}
	// What requests use, to be used again: *ask and *local.
	unused, locals sync.Pool
	work           sync.WaitGroup
	closing        sync.RWMutex // of adding to work
	ctx            context.Context
	stop           context.CancelFunc

	here, elsewhere, cached, spent, stood, shared, batches, asked, copies, copied, pulled, merged, warned atomic.Int64
}

var _ firewall.Counter = (*Counter)(nil)

// New returns a Counter without a count. It must be made before the node starts.
// Without now it goes by the monotonic clock of the machine.
func New(net Cluster, now func() time.Time, log *slog.Logger) *Counter {
	c := &Counter{net: net, table: firewall.NewLocal(now), log: log, self: net.Address(), roles: make([]role, firewall.Partitions),
		moves: make(chan struct{}, 1)}
	c.unused.New, c.locals.New = newAsk, newLocal
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.place.Store(c.look())
	net.Serve(askName, c.receiveAsk)
	net.Serve(copyName, c.receiveCopy)
	net.Serve(pullName, c.receivePull)
	net.OnMove(c.moved)
	c.work.Go(c.settle)
	return c
}

// Close ends what goes on in the background. The node has stopped: nobody asks
// any more.
func (c *Counter) Close() {
	c.closing.Lock()
	c.stop()
	c.closing.Unlock()
	c.work.Wait()
}

// aside does something in the background; false: not any more.
func (c *Counter) aside(do func()) bool {
	c.closing.RLock()
	defer c.closing.RUnlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(do)
	return true
}

// Stats tells what was counted.
func (c *Counter) Stats() Stats {
	return Stats{Here: c.here.Load(), Elsewhere: c.elsewhere.Load(), Cached: c.cached.Load(), Leased: c.spent.Load(), Stood: c.stood.Load(), Shared: c.shared.Load(),
		Batches: c.batches.Load(), Asked: c.asked.Load(), Copies: c.copies.Load(), Copied: c.copied.Load(), Pulled: c.pulled.Load(), Merged: c.merged.Load()}
}

// Keys is how many windows this node keeps, those it stands in for included.
func (c *Counter) Keys() int { return c.table.Keys() }

// verdict is what becomes of a request under some keys.
type verdict uint32

const (
	again    verdict = iota // it was not decided: look for the owner once more
	admitted                // and counted
	refused                 // and not counted
	silent                  // whoever was asked said nothing
)

// Allow implements firewall.Counter. It always can tell.
func (c *Counter) Allow(_ context.Context, demands []firewall.Demand, stands []window.Standing) (bool, error) {
	if c.known(demands, stands) {
		c.cached.Add(1)
		return false, nil
	}
	if c.spend(demands, stands) {
		return true, nil
	}
	began, without := c.table.Instant(), false
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		v := c.round(demands, stands, without)
		if v == admitted || v == refused {
			c.note(demands, stands, v)
			return v == admitted, nil
		}
		if v == silent && !without {
			without = true // with the stand-in
			continue
		}
		waited := time.Duration(c.table.Instant() - began)
		if v == silent && waited >= silence || waited >= moveTime {
			break
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
		}
	}
	c.warn(time.Duration(c.table.Instant() - began))
	return c.share(demands, stands), nil
}

// warnPause is how often it is said that limits are shared.
const warnPause = 10 * time.Second

// warn says that a request was decided by a share, now and then.
func (c *Counter) warn(waited time.Duration) {
	n, now := c.shared.Add(1), c.table.Instant()
	if last := c.warned.Load(); (last == 0 || now-last > int64(warnPause)) && c.warned.CompareAndSwap(last, max(now, 1)) {
		c.log.Warn("rate limits: nobody answered for a counter, its limit is shared among the nodes", "waited", waited.Round(time.Millisecond), "so far", n)
	}
}

// Look implements firewall.Counter. What nobody tells counts as untouched.
func (c *Counter) Look(_ context.Context, demands []firewall.Demand, stands []window.Standing) error {
	clear(stands)
	pl := c.place.Load()
	for i := range demands {
		d, s := demands[i:i+1], stands[i:i+1]
		if t := c.target(pl, demands[i].Key.Partition(), false); t.member == c.self {
			if err := c.table.Look(context.Background(), d, s); err != nil {
				return err
			}
		} else if t.member != "" {
			q := c.ask(t, modeLook, 0, d...)
			if <-q.done {
				copy(s, q.stands)
			}
			c.unused.Put(q)
		}
	}
	return nil
}

// target is who decides about a partition: its owner, or, when that is silent,
// its stand-in. Without one that is silent means not even to try it again.
type target struct {
	member  string
	standIn bool
}

func (c *Counter) target(pl *placement, part int, without bool) target {
	owner, next := pl.owner[part], pl.next[part]
	switch {
	case owner == "" || next == "":
	case owner == c.self && !c.net.Belongs(), owner != c.self && c.way(owner).mute(c.table.Instant(), without):
		return target{next, true}
	}
	return target{owner, false}
}

// maxDemands is how many keys of one request are decided without more memory.
const maxDemands = 8

// round has each owner decide, those of other nodes at the same time. All or
// nothing: what some had admitted when another refuses is taken back. Keys of
// this node come last, because what they refuse nobody else has to take back.
func (c *Counter) round(demands []firewall.Demand, stands []window.Standing, without bool) verdict {
	pl := c.place.Load()
	var room [maxDemands]target
	targets := room[:0]
	here, standIn := 0, false
	for i := range demands {
		t := c.target(pl, demands[i].Key.Partition(), without)
		if t.member == "" {
			return silent
		}
		if t.member == c.self {
			here++
			standIn = standIn || t.standIn
			t.standIn = false
		}
		targets = append(targets, t)
	}
	if here == len(demands) {
		c.here.Add(1)
		return c.decide(demands, stands, standIn)
	}
	c.elsewhere.Add(1)
	var sent [maxDemands]*ask
	asked := sent[:0]
	for i, t := range targets {
		if t.member == c.self || slices.Contains(targets[:i], t) {
			continue
		}
		mode := uint32(modeCount)
		if t.standIn {
			mode = modeStandIn
		}
		if some := pick(demands, targets, t); len(some) > 0 {
			asked = append(asked, c.ask(t, mode, 0, some...))
		}
	}
	v := admitted
	for _, q := range asked {
		<-q.done
		put(stands, targets, q.target, q.stands)
		v = worse(v, q.verdict)
	}
	if here > 0 && v == admitted {
		own := target{member: c.self}
		some := make([]window.Standing, here)
		v = c.decide(pick(demands, targets, own), some, standIn)
		put(stands, targets, own, some)
	}
	for _, q := range asked {
		if v != admitted && q.verdict == admitted {
			c.takeBack(q)
		} else {
			c.unused.Put(q)
		}
	}
	return v
}

// worse is what two verdicts come to: one that refuses settles it.
func worse(a, b verdict) verdict {
	switch {
	case a == refused || b == refused:
		return refused
	case a == silent || b == silent:
		return silent
	case a == again || b == again:
		return again
	}
	return admitted
}

// pick are the demands that one decides about, and put gives them back how they
// stand.
func pick(demands []firewall.Demand, targets []target, of target) (some []firewall.Demand) {
	if len(targets) == 1 {
		return demands
	}
	for i, t := range targets {
		if t == of {
			some = append(some, demands[i])
		}
	}
	return some
}

func put(stands []window.Standing, targets []target, of target, some []window.Standing) {
	n := 0
	for i, t := range targets {
		if t == of && n < len(some) {
			stands[i] = some[n]
			n++
		}
	}
}
