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
	"castellan/domain/ratelimit"
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
	answerTimeout = 75 * time.Millisecond
	// copyTime is how long an admission waits for the stand-in to know it, and again
	// to learn why it does not. Both fit into the patience of a front.
	replicateTimeout = 30 * time.Millisecond
	// moveTime is how long a front looks for an owner while nodes that answer say
	// that it is another.
	moveTimeout = 600 * time.Millisecond
	// probeTime is how often one that was silent is tried again.
	probeInterval = 25 * time.Millisecond
)

// Stats are counts since the start.
type Stats struct {
	Here, Elsewhere int64 // decisions by this node and by others, for its own requests
	Cached          int64 // refusals that were known here
	Reserved        int64 // let in by what was counted beforehand
	AsReplica       int64 // decisions in the place of a silent owner
	Shared          int64 // decisions within this node's share, because nobody answered
	Batches, Asked  int64 // sent to owners, and the requests in them
	Copies, Copied  int64 // batches sent to stand-ins, and the admissions in them
	Pulled          int64 // partitions that were taken over from others
	Merged          int64 // and those of them in which two had counted, so that some may count twice
}

// Counter is the firewall's Counter on a node of a cluster.
type Limiter struct {
	net   Cluster
	table *ratelimit.Table
	log   *slog.Logger
	self  string

	place         atomic.Pointer[placement]
	partitions    []partition // of the partitions; the table's locks guard them
	localLimiters [localShards]localLimiter

	mu      sync.Mutex // of changes of the placement
	drops   int64
	members sync.Map // of *member, by id
	changes chan struct{}
	// What requests use, to be used again: *ask and *local.
	queries, decisions sync.Pool
	background         sync.WaitGroup
	closing            sync.RWMutex // of adding to work
	ctx                context.Context
	stop               context.CancelFunc

	here, elsewhere, cached, reserved, asReplica, shared, batches, asked, copies, copied, pulled, merged, warned atomic.Int64
}

var _ ratelimit.Limiter = (*Limiter)(nil)

// New returns a Counter without a count. It must be made before the node starts.
// Without now it goes by the monotonic clock of the machine.
func New(net Cluster, now func() time.Time, log *slog.Logger) *Limiter {
	l := &Limiter{net: net, table: ratelimit.NewTable(now), log: log, self: net.Address(), partitions: make([]partition, ratelimit.Partitions),
		changes: make(chan struct{}, 1)}
	l.queries.New, l.decisions.New = newQuery, newOwnDecision
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.place.Store(l.readPlacement())
	net.Serve(queryName, l.receiveQueries)
	net.Serve(updateName, l.receiveUpdates)
	net.Serve(pullName, l.receivePull)
	net.OnMove(l.moved)
	l.background.Go(l.settle)
	return l
}

// Close ends what goes on in the background. The node has stopped: nobody asks
// any more.
func (l *Limiter) Close() {
	l.closing.Lock()
	l.stop()
	l.closing.Unlock()
	l.background.Wait()
}

// aside does something in the background; false: not any more.
func (l *Limiter) inBackground(do func()) bool {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.background.Go(do)
	return true
}

// Stats tells what was counted.
func (l *Limiter) Stats() Stats {
	return Stats{Here: l.here.Load(), Elsewhere: l.elsewhere.Load(), Cached: l.cached.Load(), Reserved: l.reserved.Load(), AsReplica: l.asReplica.Load(), Shared: l.shared.Load(),
		Batches: l.batches.Load(), Asked: l.asked.Load(), Copies: l.copies.Load(), Copied: l.copied.Load(), Pulled: l.pulled.Load(), Merged: l.merged.Load()}
}

// Keys is how many windows this node keeps, those it stands in for included.
func (l *Limiter) Keys() int { return l.table.Keys() }

// verdict is what becomes of a request under some keys.
type verdict uint32

const (
	retry       verdict = iota // it was not decided: look for the owner once more
	admitted                   // and counted
	refused                    // and not counted
	unreachable                // whoever was asked said nothing
)

// Allow implements firewall.Counter. It always can tell.
func (l *Limiter) Allow(_ context.Context, demands []ratelimit.Demand, stands []ratelimit.Standing) (bool, error) {
	if l.knownRefusal(demands, stands) {
		l.cached.Add(1)
		return false, nil
	}
	if l.spendReserved(demands, stands) {
		return true, nil
	}
	began, skipUnreachable := l.table.Instant(), false
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		v := l.decideOnce(demands, stands, skipUnreachable)
		if v == admitted || v == refused {
			l.remember(demands, stands, v)
			return v == admitted, nil
		}
		if v == unreachable && !skipUnreachable {
			skipUnreachable = true // with the stand-in
			continue
		}
		waited := time.Duration(l.table.Instant() - began)
		if v == unreachable && waited >= answerTimeout || waited >= moveTimeout {
			break
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
	}
	l.warnShared(time.Duration(l.table.Instant() - began))
	return l.decideByShare(demands, stands), nil
}

// warnPause is how often it is said that limits are shared.
const warnPause = 10 * time.Second

// warn says that a request was decided by a share, now and then.
func (l *Limiter) warnShared(waited time.Duration) {
	n, now := l.shared.Add(1), l.table.Instant()
	if last := l.warned.Load(); (last == 0 || now-last > int64(warnPause)) && l.warned.CompareAndSwap(last, max(now, 1)) {
		l.log.Warn("rate limits: nobody answered for a counter, its limit is shared among the nodes", "waited", waited.Round(time.Millisecond), "so far", n)
	}
}

// Look implements firewall.Counter. What nobody tells counts as untouched.
func (l *Limiter) Look(_ context.Context, demands []ratelimit.Demand, stands []ratelimit.Standing) error {
	clear(stands)
	pl := l.place.Load()
	for i := range demands {
		d, s := demands[i:i+1], stands[i:i+1]
		if t := l.target(pl, demands[i].Key.Partition(), false); t.member == l.self {
			if err := l.table.Look(context.Background(), d, s); err != nil {
				return err
			}
		} else if t.member != "" {
			q := l.query(t, modeLook, 0, d...)
			if <-q.done {
				copy(s, q.stands)
			}
			l.queries.Put(q)
		}
	}
	return nil
}

// target is who decides about a partition: its owner, or, when that is silent,
// its stand-in. Without one that is silent means not even to try it again.
type target struct {
	member  string
	replica bool
}

func (l *Limiter) target(pl *placement, part int, skipUnreachable bool) target {
	owner, next := pl.owner[part], pl.replica[part]
	switch {
	case owner == "" || next == "":
	case owner == l.self && !l.net.Belongs(), owner != l.self && l.member(owner).unreachable(l.table.Instant(), skipUnreachable):
		return target{next, true}
	}
	return target{owner, false}
}

// maxDemands is how many keys of one request are decided without more memory.
const maxDemands = 8

// round has each owner decide, those of other nodes at the same time. All or
// nothing: what some had admitted when another refuses is taken back. Keys of
// this node come last, because what they refuse nobody else has to take back.
func (l *Limiter) decideOnce(demands []ratelimit.Demand, stands []ratelimit.Standing, skipUnreachable bool) verdict {
	pl := l.place.Load()
	var room [maxDemands]target
	targets := room[:0]
	here, asReplica := 0, false
	for i := range demands {
		t := l.target(pl, demands[i].Key.Partition(), skipUnreachable)
		if t.member == "" {
			return unreachable
		}
		if t.member == l.self {
			here++
			asReplica = asReplica || t.replica
			t.replica = false
		}
		targets = append(targets, t)
	}
	if here == len(demands) {
		l.here.Add(1)
		return l.decide(demands, stands, asReplica)
	}
	l.elsewhere.Add(1)
	var sent [maxDemands]*query
	queries := sent[:0]
	for i, t := range targets {
		if t.member == l.self || slices.Contains(targets[:i], t) {
			continue
		}
		mode := uint32(modeCount)
		if t.replica {
			mode = modeAsReplica
		}
		if some := pick(demands, targets, t); len(some) > 0 {
			queries = append(queries, l.query(t, mode, 0, some...))
		}
	}
	v := admitted
	for _, q := range queries {
		<-q.done
		put(stands, targets, q.target, q.stands)
		v = worse(v, q.verdict)
	}
	if here > 0 && v == admitted {
		own := target{member: l.self}
		some := make([]ratelimit.Standing, here)
		v = l.decide(pick(demands, targets, own), some, asReplica)
		put(stands, targets, own, some)
	}
	for _, q := range queries {
		if v != admitted && q.verdict == admitted {
			l.takeBack(q)
		} else {
			l.queries.Put(q)
		}
	}
	return v
}

// worse is what two verdicts come to: one that refuses settles it.
func worse(a, b verdict) verdict {
	switch {
	case a == refused || b == refused:
		return refused
	case a == unreachable || b == unreachable:
		return unreachable
	case a == retry || b == retry:
		return retry
	}
	return admitted
}

// pick are the demands that one decides about, and put gives them back how they
// stand.
func pick(demands []ratelimit.Demand, targets []target, of target) (some []ratelimit.Demand) {
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

func put(stands []ratelimit.Standing, targets []target, of target, some []ratelimit.Standing) {
	n := 0
	for i, t := range targets {
		if t == of && n < len(some) {
			stands[i] = some[n]
			n++
		}
	}
}
