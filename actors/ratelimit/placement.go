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

func (l *Limiter) readPlacement() *placement {
	pl := &placement{}
	for p := range pl.owner {
		pl.owner[p], pl.replica[p] = l.net.Place(Kind, strconv.Itoa(p))
		if id := pl.owner[p]; id != "" && !slices.Contains(pl.members, id) {
			pl.members = append(pl.members, id)
		}
	}
	pl.alone = len(pl.members) == 1 && pl.members[0] == l.self
	return pl
}

// moved installs a new placement. A node that is no longer the owner stops deciding at once. The new owner requests the
// state from it.
func (l *Limiter) moved(func(kind, id string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, now := l.place.Load(), l.readPlacement()
	l.place.Store(now)
	joined := before.alone && !now.alone
	added := slices.DeleteFunc(slices.Clone(now.members),
		func(id string) bool { return slices.Contains(before.members, id) })
	drops := l.net.Drops()
	lapsed := drops != l.drops // this node may have missed messages
	l.drops = drops
	for p := range l.partitions {
		l.table.WithPartition(p, func(*ratelimit.Partition) {
			l.stepLocked(p, &shard.Placed{Place: l.placeOf(now, p), Joined: joined, Lapsed: lapsed,
				Decided: l.partitions[p].Owns() && l.decidedBefore(p, added), Same: before.replica[p] == now.replica[p]})
		})
	}
	l.wake()
}

// decidedBefore reports whether one of these members may still decide about a partition: it did so before this node
// received the update.
func (l *Limiter) decidedBefore(p int, ids []string) bool {
	return len(ids) > 0 && slices.ContainsFunc(l.net.Former(Kind, strconv.Itoa(p)),
		func(id string) bool { return slices.Contains(ids, id) })
}

// wake makes settle check every partition.
func (l *Limiter) wake() {
	select {
	case l.changes <- struct{}{}:
	default:
	}
}

// takeOverWorkers is how many partitions are taken over at a time.
const takeOverWorkers = 16

// missingInterval is how often a replica looks for states that it lacks.
const missingInterval = 150 * time.Millisecond

// settle takes over, after each change, the partitions that this node owns now, before a request needs them. It also
// sends new replicas their states.
func (l *Limiter) settle() {
	tick := time.NewTicker(missingInterval)
	defer tick.Stop()
	for {
		select {
		case <-l.changes:
		case <-tick.C:
			l.requestMissing()
			continue
		case <-l.ctx.Done():
			return
		}
		parts := make(chan int)
		for range takeOverWorkers {
			l.background.Go(func() {
				for p := range parts {
					l.takeOver(p)
					l.sendState(p)
				}
			})
		}
		pl := l.place.Load()
		for p := range l.partitions {
			if pl.owner[p] == l.self && l.ctx.Err() == nil && !pl.alone {
				parts <- p
			}
		}
		close(parts)
	}
}

// requestMissing requests from owners the states that this node lacks as their replica. The node may have received a
// change after the state, or have been away. An owner in whose place this node has decided learns that, too: its state
// is refused.
func (l *Limiter) requestMissing() {
	pl := l.place.Load()
	if pl.alone || !l.net.Belongs() {
		return
	}
	missing := map[string][]uint32{}
	for p := range l.partitions {
		if pl.replica[p] == l.self && pl.owner[p] != "" {
			m := &shard.Lacks{}
			if l.step(p, m); m.State {
				missing[pl.owner[p]] = append(missing[pl.owner[p]], uint32(p))
			}
		}
	}
	for owner, parts := range missing {
		l.background.Go(func() {
			l.net.Ask(l.ctx, l.member(owner).asking.patience(), owner, pullName, &pb.RatePull{Tell: parts})
		})
	}
}

// Sweep removes expired state. It visits no key before its deadline.
func (l *Limiter) Sweep() {
	l.table.Sweep()
	now, pl := l.table.Instant(), l.place.Load()
	l.members.Range(func(id, _ any) bool {
		if !slices.Contains(pl.owner[:], id.(string)) && !slices.Contains(pl.replica[:], id.(string)) {
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
