package ratelimit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// shards are what all parts of a limiter share: the shards of this node, their members and the work in the background.
// A shard itself says which node may decide (package shard).
type shards struct {
	net   Cluster
	table *ratelimit.Table
	log   *slog.Logger
	self  string

	place      atomic.Pointer[placement]
	partitions []slot // guarded by the table's locks
	peers      *peers

	background sync.WaitGroup
	closing    sync.RWMutex // guards additions to background
	ctx        context.Context
	stop       context.CancelFunc

	asReplica, merged atomic.Int64
}

// inBackground runs do in the background; false: the limiter is closed.
func (sh *shards) inBackground(do func()) bool {
	sh.closing.RLock()
	defer sh.closing.RUnlock()
	if sh.ctx.Err() != nil {
		return false
	}
	sh.background.Go(do)
	return true
}

// slot is a shard of this node, and its effects until they are performed.
type slot struct {
	shard.Shard
	out shard.Effects
}

// step runs a message in a shard.
func (sh *shards) step(p int, m shard.Message) {
	sh.table.WithPartition(p, func(*ratelimit.Partition) { sh.stepLocked(p, m) })
}

// stepLocked is step for callers that have the partition locked.
func (sh *shards) stepLocked(p int, m shard.Message) {
	s := &sh.partitions[p]
	s.Step(m, sh.table.Instant(), &s.out)
	sh.perform(&s.out)
}

// withShard reads a shard.
func (sh *shards) withShard(p int, do func(s *shard.Shard)) {
	sh.table.WithPartition(p, func(*ratelimit.Partition) { do(&sh.partitions[p].Shard) })
}

// perform does what shards have asked for. Their partitions are locked, so that the updates of each arrive in order.
func (sh *shards) perform(out *shard.Effects) {
	for i, x := range out.Sends {
		if d, waits := x.Waits.(*decision); waits {
			d.pending.left.Add(1)
		}
		sh.peers.member(x.To).updates.put(x.Update)
		out.Sends[i] = shard.Send{}
	}
	for i, x := range out.Failed {
		x.Waits.(*decision).pending.failed.Store(true)
		out.Failed[i] = nil
	}
	if out.AsReplica > 0 {
		sh.asReplica.Add(out.AsReplica)
	}
	if out.Merged > 0 {
		sh.merged.Add(out.Merged)
	}
	out.Sends, out.Failed, out.AsReplica, out.Merged = out.Sends[:0], out.Failed[:0], 0, 0
}

// placeOf describes the members of a partition to its shard. Whether the requester is silent is not asked.
func (sh *shards) placeOf(pl *placement, p int, requester string) shard.Place {
	at := shard.Place{Self: sh.self, Owner: pl.owner[p], Replica: pl.replica[p], Confirmed: sh.net.Belongs()}
	if at.Replica != "" && at.Replica != sh.self && at.Replica != requester {
		at.ReplicaSilent = sh.peers.member(at.Replica).replicaUnreachable.Load()
	}
	if at.ReplicaSilent {
		at.Witness = sh.peers.witness(pl, p)
	}
	return at
}

// peers knows which other members answer, and probes those that do not (member.go).
type peers struct {
	*shards
	members     sync.Map // of *member, by id
	still       standstill
	sendQueries func(m *member, batch []*query)
	sendUpdates func(m *member, batch []*shard.Update)
}

// decider finds the owners of a request's keys, and asks them under one name until it is decided, all or nothing. It
// also decides about the requests of others (asking.go, decision.go, query.go, answer.go).
type decider struct {
	*shards
	follower  *follower
	mover     *mover
	names     atomic.Uint64 // the last name of an admission; it begins at random
	queries   sync.Pool     // of *query
	decisions sync.Pool     // of *ownDecision
	grant     func(d *decision, want int64) int64

	here, elsewhere, shared, batches, asked atomic.Int64
	warned                                  atomic.Int64 // when warnShared last logged
}

// reservations keeps what this node knows about its own requests: cached refusals, reserved places, and its share of a
// limit (local.go, reservation.go).
type reservations struct {
	*shards
	decider       *decider
	localLimiters [localShards]localLimiter
	localKeys     ratelimit.Tally // of localLimiters

	cached, reserved atomic.Int64
}

// replicator sends the admissions and states of this owner to its replicas, and decides whether it may go on without
// one (replicate.go).
type replicator struct {
	*shards
	follower *follower
	mover    *mover

	copies, copied atomic.Int64
}

// follower receives the admissions and states of owners, as their replica, and asks what it missed (replica.go).
type follower struct {
	*shards
	replicator *replicator
	mover      *mover
}

// mover pulls and gives shards after a change of the members (placement.go, handoff.go).
type mover struct {
	*shards
	replicator *replicator
	mu         sync.Mutex // serializes changes of the placement
	drops      int64
	changes    chan struct{}

	pulled atomic.Int64
}
