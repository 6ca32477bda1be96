package ratelimit

import (
	"slices"
	"strconv"
	"time"

	"castellan/actors/pb"
	"castellan/domain/ratelimit"
)

// placement says who keeps each partition. It is immutable.
type placement struct {
	owner, replica [ratelimit.Partitions]string
	members        []string // all owners
	alone          bool     // this node is all there is
}

// members is among how many a limit is shared when nobody answers.
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

// keepTime is how long a node keeps what it has neither as owner nor as
// stand-in: until whoever has it now has asked.
const retention = 10 * time.Second

// moved puts a new placement in force. Owners that this node is not any more
// stop here at once: whoever they are now asks for what they had.
func (l *Limiter) moved(func(kind, id string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, now := l.place.Load(), l.readPlacement()
	l.place.Store(now)
	joined := before.alone && !now.alone
	fresh := slices.DeleteFunc(slices.Clone(now.members), func(id string) bool { return slices.Contains(before.members, id) })
	drops := l.net.Drops() // this node may have missed what it was told
	dropped := drops != l.drops
	l.drops = drops
	for p := range l.partitions {
		owner, next := now.owner[p] == l.self, now.replica[p] == l.self
		l.table.WithPartition(p, func(part *ratelimit.Partition) {
			r := &l.partitions[p]
			r.notBefore = 0
			if joined && part.Len() > 0 {
				r.unlisted, r.unreplicated = true, nil // nobody else knows of it
			}
			switch {
			case dropped: // others may have decided since
				r.state, r.whole, r.pullFrom, r.replica = idle, false, "", ""
			case r.state == owning && (!owner || joined || r.replica != "" && r.replica != now.replica[p] || l.decidedBefore(p, fresh)):
				r.stopDeciding()
			case r.state == owning:
				r.replica = now.replica[p]
			case r.source != now.owner[p]:
				r.whole = false // its owner will tell; it may have done so already
			}
			if owner || next {
				r.dropAt = 0
			} else if r.dropAt == 0 {
				r.dropAt = l.table.Instant() + int64(retention)
			}
			r.stateSent = r.stateSent && before.replica[p] == now.replica[p] && !(now.replica[p] != "" && l.member(now.replica[p]).replicaUnreachable.Load())
		})
	}
	l.wake()
}

// wasOf tells whether one of these members may still decide about a partition,
// because it did before this node heard of it.
func (l *Limiter) decidedBefore(p int, ids []string) bool {
	return len(ids) > 0 && slices.ContainsFunc(l.net.Former(Kind, strconv.Itoa(p)), func(id string) bool { return slices.Contains(ids, id) })
}

// settlers is how many partitions are taken over at a time.
const takeOverWorkers = 16

// settle takes over, after each change, what is this node's now, before anybody
// asks for it, and tells new stand-ins what they stand in for.
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

// wantTime is how often a stand-in looks whether it lacks something.
const missingInterval = 150 * time.Millisecond

// want asks owners for what this node stands in for and does not have whole: it
// may have seen a change after it was told, or have been away.
func (l *Limiter) requestMissing() {
	pl := l.place.Load()
	if pl.alone || !l.net.Belongs() {
		return
	}
	lacks := map[string][]uint32{}
	for p := range l.partitions {
		if pl.replica[p] == l.self && pl.owner[p] != "" {
			l.table.WithPartition(p, func(*ratelimit.Partition) {
				if r := &l.partitions[p]; !r.whole && !r.stands && r.state == idle {
					r.awaitState()
					lacks[pl.owner[p]] = append(lacks[pl.owner[p]], uint32(p))
				}
			})
		}
	}
	for owner, parts := range lacks {
		l.background.Go(func() { l.net.Ask(l.ctx, answerTimeout, owner, pullName, &pb.RatePull{Tell: parts}) })
	}
}

// Sweep forgets what does not count any more.
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
		l.table.WithPartition(p, func(part *ratelimit.Partition) {
			if r := &l.partitions[p]; r.dropAt != 0 && now > r.dropAt && r.state != owning {
				part.Clear()
				*r = partition{dropAt: r.dropAt, handoffs: r.handoffs, takingOver: r.takingOver}
			}
		})
	}
}
