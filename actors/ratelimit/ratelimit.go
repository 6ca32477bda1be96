// Package ratelimit keeps the windows of rate limits over the nodes of a cluster: a limit of N admits N, not N per node
// (section 4.5 of the interface, D-WAF-13). The windows themselves are in package domain/guard/ratelimit.
//
// The one idea: every key has one owner, and a second node, the replica, has each admission before the client does. The
// ring of package cluster assigns each of the 1024 partitions of the keys to an owner. It also names the next owner in
// line: the replica. The owner's count is authoritative. A node with a request calls the owner: under a lock if it is
// this node, otherwise in batches that grow with the load.
//
// When the owner dies, its replica goes on without a gap. When the owner does not answer, the replica decides for it.
// The owner learns this from the replica, because the replica must confirm its admissions, and then takes over the
// replica's state. While one of both is silent, a third member keeps the admissions of the other one (witness.go). So
// one node at a time may be lost or frozen, while others stall for a moment, and no window holds one too many. When
// neither answers for long, a node decides alone within its share of the limit. Each admission has a name, so a request
// that is sent twice counts once (shard/recent.go).
//
// A key is a virtual actor of the kind "rate" (host.go), but has no mailbox and no goroutine. The windows of a
// partition are a table behind a lock, and a turn runs on the goroutine of its caller, at a tenth of the cost.
//
// Start reading at Limiter.Allow and parts.go (the parts of a Limiter), then shard/README.md. Then read package shard
// (the state machine of a partition) and its drivers: decision.go (decider), replicate.go (replicator), replica.go
// (follower) and handoff.go (mover). Last come reservation.go and patience.go (how long a node waits for another).
// The reasons and figures are in docs/decisions/0004-replication-of-the-limiter.md.
package ratelimit

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/ratelimit/shard"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
)

// Cluster is the part of a cluster node that the limiter needs; *cluster.Node implements it.
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

// Kind is the kind of the partitions in the ring; their ids are numbers.
const Kind = "rates"

const (
	// askTime is the timeout of a decision. A client that switches to another node after a second of silence receives
	// an answer to retry before that.
	askTime = 900 * time.Millisecond
	// silenceTime is how long the owner and the replica of a key must have been silent before this node decides within
	// its share of the limit. It is more than two consecutive stalls of mostPatience.
	silenceTime = 1100 * time.Millisecond
	// probeInterval is how often an unreachable member is probed.
	probeInterval = 25 * time.Millisecond
)

var errGone = fault.New(fault.Unavailable, "the client no longer waits").After(time.Second)

var errUndecided = fault.New(fault.Unavailable, "the request cannot be counted at the moment; try again").
	After(time.Second)

// Stats are counts since the start.
type Stats struct {
	Here, Elsewhere int64 // decisions by this node and by others, for its own requests
	Cached          int64 // refusals that were cached here
	Reserved        int64 // requests admitted by a reservation
	AsReplica       int64 // decisions in the place of an unreachable owner
	Shared          int64 // decisions within this node's share, because no node answered
	Batches, Asked  int64 // batches sent to owners, and the requests in them
	Copies, Copied  int64 // batches sent to replicas, and the admissions in them
	Pulled          int64 // partitions taken over from other members
	Merged          int64 // takeovers in which two members had counted, so that some admissions may count twice
}

// Limiter is the ratelimit.Limiter of a cluster node. Its parts are described in parts.go.
type Limiter struct {
	*shards
	*peers
	*decider
	*reservations
	*replicator
	*follower
	*mover
}

var _ ratelimit.Limiter = (*Limiter)(nil)

// New returns an empty Limiter. It must be created before the node starts. A nil now means the monotonic clock of the
// machine.
func New(net Cluster, now func() time.Time, log *slog.Logger) *Limiter {
	s := &shards{net: net, table: ratelimit.NewTable(now), log: log, self: net.Address(),
		partitions: make([]slot, ratelimit.Partitions)}
	ps := &peers{shards: s}
	mv := &mover{shards: s, changes: make(chan struct{}, 1)}
	f := &follower{shards: s, mover: mv}
	r := &replicator{shards: s, follower: f, mover: mv}
	dr := &decider{shards: s, follower: f, mover: mv}
	rs := &reservations{shards: s, decider: dr}
	s.peers, f.replicator, mv.replicator = ps, r, r
	ps.sendQueries, ps.sendUpdates, dr.grant = dr.sendQueries, r.sendUpdates, rs.grant
	for p := range s.partitions {
		s.partitions[p].Init(p, s.table.At(p))
	}
	for i := range rs.localLimiters {
		rs.localLimiters[i].kept = &rs.localKeys
	}
	dr.queries.New, dr.decisions.New = newQuery, newOwnDecision
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.place.Store(s.readPlacement())
	// #nosec G404: names of admissions must differ between starts; they are not secret.
	dr.names.Store(rand.Uint64())
	ps.still.last.Store(s.table.Instant())
	l := &Limiter{s, ps, dr, rs, r, f, mv}
	net.Serve(queryName, dr.receiveQueries)
	net.Serve(updateName, f.receiveUpdates)
	net.Serve(pullName, mv.receivePull)
	net.Serve(topName, l.receiveTop)
	net.OnMove(mv.moved)
	s.background.Go(mv.settle)
	s.background.Go(f.beat)
	return l
}

// Close ends the work in the background. The node must have stopped.
func (l *Limiter) Close() {
	l.closing.Lock()
	l.stop()
	l.closing.Unlock()
	l.background.Wait()
}

// Stats returns the counts since the start.
func (l *Limiter) Stats() Stats {
	return Stats{Here: l.here.Load(), Elsewhere: l.elsewhere.Load(), Cached: l.cached.Load(),
		Reserved: l.reserved.Load(), AsReplica: l.asReplica.Load(), Shared: l.shared.Load(),
		Batches: l.batches.Load(), Asked: l.asked.Load(), Copies: l.copies.Load(), Copied: l.copied.Load(),
		Pulled: l.pulled.Load(), Merged: l.merged.Load()}
}

// Bound sets how many keys of a rule this node decides about (ratelimit.Tally). The keys that it keeps as a replica
// come in addition. It is called before the first request.
func (l *Limiter) Bound(most int) {
	l.table.Bound(most)
	l.localKeys.Bound(most)
}

// Keys returns how many windows this node keeps, as owner and as replica.
func (l *Limiter) Keys() int { return l.table.Keys() }

// verdict is the result of a request under some keys.
type verdict = shard.Verdict

const (
	retry       = shard.Retry
	admitted    = shard.Admitted
	refused     = shard.Refused
	unreachable = refused + 1 // the node that was asked did not answer
)

// Allow fails when no member that may decide answers in time, or when the client has gone; then nothing is counted.
func (l *Limiter) Allow(ctx context.Context, demands []ratelimit.Demand, standings []ratelimit.Standing) (bool, error) {
	began := l.table.Instant()
	if l.knownRefusal(demands, standings, began) {
		l.cached.Add(1)
		return false, nil
	}
	if l.spendReserved(demands, standings) {
		return true, nil
	}
	var room [maxDemands]uint64
	a := asking{ids: l.name(room[:0], len(demands))}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		v := l.decideOnce(&a, demands, standings)
		a.again = true
		now := l.table.Instant()
		waited := time.Duration(now - began)
		switch {
		case v == admitted && (waited < leastPatience || ratelimit.Waits(ctx)), v == refused:
			if v == refused {
				l.takeBackAll(&a, demands)
			}
			l.remember(demands, standings, v, now)
			return v == admitted, nil
		case v == admitted || !ratelimit.Waits(ctx):
			l.takeBackAll(&a, demands)
			return false, errGone
		case (v == unreachable || waited >= askTime) && l.allSilent(demands, waited):
			l.warnShared(waited)
			admits := l.decideByShare(demands, standings)
			if !admits {
				l.takeBackAll(&a, demands)
			}
			return admits, nil
		case waited >= askTime, l.ctx.Err() != nil:
			l.takeBackAll(&a, demands)
			return false, errUndecided
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-l.ctx.Done():
		}
	}
}

// warnPause is the least time between two log lines about shared limits.
const warnPause = 10 * time.Second

// warnShared counts a request that was decided by a share. It logs at most once per warnPause.
func (l *Limiter) warnShared(waited time.Duration) {
	n, now, last := l.shared.Add(1), l.table.Instant(), l.warned.Load()
	if (last == 0 || now-last > int64(warnPause)) && l.warned.CompareAndSwap(last, max(now, 1)) {
		l.log.Warn("rate limits: no node answered for a counter; each node applies its share of the limit",
			"waited", waited.Round(time.Millisecond), "so far", n)
	}
}

// Look fails when no member that may decide answers in time.
func (l *Limiter) Look(_ context.Context, demands []ratelimit.Demand, standings []ratelimit.Standing) error {
	clear(standings)
	pl := l.place.Load()
	for i := range demands {
		d, s := demands[i:i+1], standings[i:i+1]
		if t := l.target(pl, demands[i].Key.Partition()); t.member == l.self {
			var known bool
			if s[0], known = l.look(&d[0]); !known {
				return errUndecided
			}
		} else if t.member != "" {
			q := l.query(t, modeLook, 0, nil, d...)
			answered := <-q.done && q.verdict == refused // it counts nothing
			copy(s, q.standings)
			if l.queries.Put(q); !answered {
				return errUndecided
			}
		} else {
			return errUndecided
		}
	}
	return nil
}

// look returns the state of a key; not known: this node does not decide about its partition yet, or any more.
func (dr *decider) look(d *ratelimit.Demand) (s ratelimit.Standing, known bool) {
	part := d.Key.Partition()
	dr.table.WithPartition(part, func(p *ratelimit.Partition) {
		if known = dr.partitions[part].Decides() || dr.place.Load().alone; known {
			s = p.Look(d, d.Key.Hash(), dr.table.Instant())
		}
	})
	return s, known
}

// target is the member that decides about a partition: its owner or, if that is unreachable, its replica.
type target struct {
	member  string
	replica bool
}

func (dr *decider) target(pl *placement, part int) target {
	owner, replica := pl.owner[part], pl.replica[part]
	switch {
	case owner == "" || replica == "":
	case owner == dr.self && !dr.net.Belongs(), owner != dr.self && dr.peers.member(owner).unreachable():
		if replica != dr.self && dr.peers.member(replica).unreachable() {
			return target{} // neither is asked until one of them answers again
		}
		return target{replica, true}
	}
	return target{owner, false}
}

// maxDemands is how many keys of one request are decided without an allocation.
const maxDemands = 8

// decideOnce calls every owner, the other nodes in parallel. It is all or nothing: when one refuses, the admissions of
// the others are taken back. This node's own keys come last, so that their refusal is the cheapest one.
func (dr *decider) decideOnce(a *asking, demands []ratelimit.Demand, standings []ratelimit.Standing) verdict {
	pl := dr.place.Load()
	var room [maxDemands]target
	targets := room[:0]
	here, asReplica := 0, false
	var hashed [maxDemands]uint64
	hashes := hashed[:0]
	for i := range demands {
		hashes = append(hashes, demands[i].Key.Hash())
		p := ratelimit.PartitionOf(hashes[i])
		t := dr.target(pl, p)
		if t.member == "" {
			return unreachable
		}
		if owner := pl.owner[p]; t.replica && owner != dr.self {
			dr.peers.member(owner).replacedAt.Store(dr.table.Instant())
		}
		if t.member == dr.self {
			here++
			asReplica = asReplica || t.replica
			t.replica = false
		}
		targets = append(targets, t)
	}
	if here == len(demands) {
		dr.here.Add(1)
		v := dr.decide(demands, hashes, a.ids, standings, asReplica, a.again)
		if v != refused {
			a.counted(dr.self)
		}
		return v
	}
	dr.elsewhere.Add(1)
	var sent [maxDemands]*query
	queries := sent[:0]
	for i, t := range targets {
		if t.member == dr.self || slices.Contains(targets[:i], t) {
			continue
		}
		mode := uint32(modeCount)
		if t.replica {
			mode = modeAsReplica
		}
		if some := pick(demands, targets, t); len(some) > 0 {
			q := dr.prepare(t, mode, 0, pick(a.ids, targets, t), some)
			q.again = a.again
			dr.peers.member(t.member).queries.put(q)
			queries = append(queries, q)
		}
	}
	v := admitted
	for _, q := range queries {
		<-q.done
		put(standings, targets, q.target, q.standings)
		if v = worse(v, q.verdict); q.verdict != refused {
			a.counted(q.member)
		}
		dr.queries.Put(q)
	}
	if here > 0 && v == admitted {
		own := target{member: dr.self}
		some := make([]ratelimit.Standing, here)
		if v = dr.decide(pick(demands, targets, own), pick(hashes, targets, own), pick(a.ids, targets, own), some, asReplica,
			a.again); v != refused {
			a.counted(dr.self)
		}
		put(standings, targets, own, some)
	}
	return v
}

// worse combines two verdicts: a refusal wins.
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

// pick returns the demands, or their names, that one target decides about; put writes their standings back.
func pick[T any](all []T, targets []target, of target) (some []T) {
	if len(targets) == 1 {
		return all
	}
	for i, t := range targets {
		if t == of {
			some = append(some, all[i])
		}
	}
	return some
}

func put(standings []ratelimit.Standing, targets []target, of target, some []ratelimit.Standing) {
	n := 0
	for i, t := range targets {
		if t == of && n < len(some) {
			standings[i] = some[n]
			n++
		}
	}
}
