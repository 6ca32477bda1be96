package ratelimit

import (
	"slices"
	"strconv"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// placement holds the members that keep each partition. It is immutable.
type placement struct {
	owner, replica [ratelimit.Partitions]string
	members        []string // all owners
	alone          bool     // this node owns everything
}

// shares returns the number of nodes that share a limit when none answers.
func (pl *placement) shares() int64 { return int64(max(1, len(pl.members))) }

func (sh *shards) readPlacement() *placement {
	pl := &placement{}
	for p := range pl.owner {
		pl.owner[p], pl.replica[p] = sh.net.Place(Kind, strconv.Itoa(p))
		if id := pl.owner[p]; id != "" && !slices.Contains(pl.members, id) {
			pl.members = append(pl.members, id)
		}
	}
	pl.alone = len(pl.members) == 1 && pl.members[0] == sh.self
	return pl
}

// moved installs a new placement. A node that is no longer the owner stops deciding at once. The new owner requests the
// state from it.
func (mv *mover) moved(func(kind, id string) bool) {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	before, now := mv.place.Load(), mv.readPlacement()
	mv.place.Store(now)
	joined := before.alone && !now.alone
	added := slices.DeleteFunc(slices.Clone(now.members),
		func(id string) bool { return slices.Contains(before.members, id) })
	drops := mv.net.Drops()
	lapsed := drops != mv.drops // this node may have missed messages
	mv.drops = drops
	for p := range mv.partitions {
		mv.table.WithPartition(p, func(*ratelimit.Partition) {
			mv.stepLocked(p, &shard.Placed{Place: mv.placeOf(now, p, ""), Joined: joined, Lapsed: lapsed,
				Decided: mv.partitions[p].Owns() && mv.decidedBefore(p, added), Same: before.replica[p] == now.replica[p]})
		})
	}
	mv.wake()
}

// decidedBefore reports whether one of these members may still decide about a partition: it did so before this node
// received the update.
func (mv *mover) decidedBefore(p int, ids []string) bool {
	return len(ids) > 0 && slices.ContainsFunc(mv.net.Former(Kind, strconv.Itoa(p)),
		func(id string) bool { return slices.Contains(ids, id) })
}

// wake makes settle check every partition.
func (mv *mover) wake() {
	select {
	case mv.changes <- struct{}{}:
	default:
	}
}

// takeOverWorkers is how many partitions are taken over at a time.
const takeOverWorkers = 16

// missingInterval is how often a replica looks for states that it lacks.
const missingInterval = 150 * time.Millisecond

// settle takes over, after each change, the partitions that this node owns now, before a request needs them. It also
// sends new replicas their states. It repeats what was not possible, because the membership was confirmed after the
// change or another member had not stopped.
func (mv *mover) settle() {
	tick := time.NewTicker(missingInterval)
	defer tick.Stop()
	settled := true
	for {
		select {
		case <-mv.changes:
		case <-tick.C:
			mv.requestMissing()
			if settled = settled || mv.settled(); settled || !mv.net.Belongs() {
				continue
			}
		case <-mv.ctx.Done():
			return
		}
		settled = false
		parts := make(chan int)
		for range takeOverWorkers {
			mv.background.Go(func() {
				for p := range parts {
					mv.takeOver(p)
					mv.replicator.sendState(p)
				}
			})
		}
		pl := mv.place.Load()
		for p := range mv.partitions {
			if pl.owner[p] == mv.self && mv.ctx.Err() == nil && !pl.alone {
				parts <- p
			}
		}
		close(parts)
	}
}

// settled reports whether this node decides about each partition that it owns.
func (mv *mover) settled() bool {
	pl, all := mv.place.Load(), true
	for p := range mv.partitions {
		if pl.owner[p] == mv.self && !pl.alone && all {
			mv.withShard(p, func(s *shard.Shard) { all = s.Owns() })
		}
	}
	return all
}

// requestMissing requests from owners the states that this node lacks as their replica. The node may have received a
// change after the state, or have been away. An owner in whose place this node has decided learns that, too: its state
// is refused.
func (mv *mover) requestMissing() {
	pl := mv.place.Load()
	if pl.alone || !mv.net.Belongs() {
		return
	}
	missing := map[string][]uint32{}
	for p := range mv.partitions {
		if pl.replica[p] == mv.self && pl.owner[p] != "" {
			m := &shard.Lacks{}
			if mv.step(p, m); m.State {
				missing[pl.owner[p]] = append(missing[pl.owner[p]], uint32(p))
			}
		}
	}
	for owner, parts := range missing {
		mv.background.Go(func() {
			mv.net.Ask(mv.ctx, mv.peers.member(owner).asking.patience(), owner, pullName, &pb.RatePull{Tell: parts})
		})
	}
}

// Sweep removes expired state. It visits no key before its deadline.
func (l *Limiter) Sweep() {
	l.table.Sweep()
	now, pl := l.table.Instant(), l.place.Load()
	l.members.Range(func(id, m any) bool {
		empty := false
		m.(*member).withWitnessed(func(w *shard.Witnessed) { empty = w.Empty(now) })
		if empty && !slices.Contains(pl.owner[:], id.(string)) && !slices.Contains(pl.replica[:], id.(string)) {
			l.members.Delete(id)
		}
		return true
	})
	for i := range l.localLimiters {
		for k, ended := range l.localLimiters[i].sweep(now) {
			l.giveBack(ratelimit.Demand{Key: k, Limit: 1, Period: 1}, ended)
		}
	}
	for p := range l.partitions {
		l.step(p, shard.Tick{})
	}
}
