package ratelimit

import (
	"math"
	"slices"
	"sync"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// This file is the drivers' part of witnesses; package shard says what a witness is.

// witness returns a third member for the admissions in a partition that no replica confirms; "": there is none.
func (ps *peers) witness(pl *placement, p int) (third string) {
	for _, id := range pl.members {
		if id == ps.self || id == pl.owner[p] || id == pl.replica[p] || ps.net.Lost(id) {
			continue
		}
		if third = id; !ps.member(id).unreachable() {
			break
		}
	}
	return third
}

// sendWitness sends an admission, which its decision waits for, to a witness. False: there is none.
func (r *replicator) sendWitness(x *shard.Update, d *decision) bool {
	to := r.peers.witness(r.place.Load(), x.Part)
	if to == "" {
		return false
	}
	y := *x
	y.Witness, y.Waits = true, d
	r.peers.member(to).updates.put(&y)
	return true
}

// failWitness fails the decisions whose witness did not confirm them, and returns the other updates.
func failWitness(updates []*shard.Update) []*shard.Update {
	return slices.DeleteFunc(slices.Clone(updates), func(x *shard.Update) bool {
		if d, waits := x.Waits.(*decision); waits && x.Witness {
			d.pending.failed.Store(true)
			d.finish()
		}
		return x.Witness
	})
}

// keep remembers the admissions of another member in a message, as their witness. If that member decides in an owner's
// place, this node has learned that, too.
func (ps *peers) keep(from string, q *pb.RateCopy) {
	pl, now := ps.place.Load(), ps.table.Instant()
	for _, x := range decodeUpdates(q) {
		ps.member(from).withWitnessed(func(w *shard.Witnessed) {
			if x.TakenBack {
				w.Forget([]uint64{x.ID}, x.Count)
			} else {
				w.Note(x, now)
			}
		})
		if owner := pl.owner[x.Part]; owner != from && owner != "" && owner != ps.self {
			storeMax(&ps.member(owner).replacedAt, now)
		}
	}
}

// keepOwn is keep for an admission of this node's own request, which it sent at an instant. False: it is void.
func (m *member) keepOwn(d *ratelimit.Demand, id, number uint64, sent, now int64) bool {
	void := false
	m.withWitnessed(func(w *shard.Witnessed) {
		if void = w.Void(sent); !void {
			w.Note(&shard.Update{Part: d.Key.Partition(), Number: number, ID: id, Demand: *d, Count: 1}, now)
		}
	})
	return !void
}

// withWitnessed calls do with the admissions of the member that this node has witnessed.
func (m *member) withWitnessed(do func(w *shard.Witnessed)) {
	m.witnessMu.Lock()
	defer m.witnessMu.Unlock()
	do(&m.witnessed)
}

// recordInquiry returns what this node has witnessed of a lost member.
func (m *member) recordInquiry(parts []uint32, now int64) (all []*shard.Update) {
	m.withWitnessed(func(w *shard.Witnessed) { all = w.Asked(parts, now) })
	return all
}

// inquiry is the question, to all other members, what they have witnessed of a lost one. One message is for many.
type inquiry struct {
	parts []uint32
	all   []*shard.Update
	ok    bool // all have answered, or are lost
	done  chan struct{}
}

// witnessedOf returns what all members have witnessed of lost ones in a partition.
func (ps *peers) witnessedOf(lost []string, p int) (all []*shard.Update) {
	for _, id := range lost {
		all = append(all, ps.ask(id, uint32(p)).all...)
	}
	return all
}

func (ps *peers) ask(lost string, parts ...uint32) *inquiry {
	q := &inquiry{parts: parts, done: make(chan struct{})}
	ps.member(lost).inquiries.put(q)
	<-q.done
	return q
}

// inquire answers a batch of inquiries about a lost member.
func (ps *peers) inquire(lost *member, batch []*inquiry) {
	var parts []uint32
	for _, q := range batch {
		parts = append(parts, q.parts...)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	all, ok := lost.recordInquiry(parts, ps.table.Instant()), true
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, id := range ps.place.Load().members {
		if id == ps.self || id == lost.id {
			continue
		}
		asked.Go(func() {
			some, answered := ps.askWitness(id, &pb.RateCopy{Without: lost.id, Of: parts})
			mu.Lock()
			defer mu.Unlock()
			all, ok = append(all, some...), ok && answered
		})
	}
	asked.Wait()
	for _, q := range batch {
		q.all, q.ok = all, ok
		close(q.done)
	}
}

// askWitness asks a member until it answers, is lost, or has been silent for too long: not ok.
func (ps *peers) askWitness(id string, q *pb.RateCopy) (all []*shard.Update, ok bool) {
	end := ps.table.Instant() + int64(pullTimeout)
	for ps.ctx.Err() == nil && ps.table.Instant() < end {
		if ps.net.Lost(id) {
			return nil, true
		}
		got, err := ps.net.Ask(ps.ctx, time.Duration(end-ps.table.Instant()), id, updateName, q)
		answer, is := got.(*pb.RateCopied)
		if err != nil || !is {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		return decodeUpdates(answer.Witnessed), true
	}
	return nil, false
}

func encodeUpdates(all []*shard.Update) *pb.RateCopy {
	q, text := &pb.RateCopy{}, []byte(nil)
	for _, x := range all {
		text = encodeUpdate(q, x, text)
	}
	return q
}

// decodeUpdates decodes admissions, which may lie back. q may be nil.
func decodeUpdates(q *pb.RateCopy) (all []*shard.Update) {
	if q == nil || !updateFits(q) {
		return nil
	}
	for i := range q.Parts {
		if x := decodeUpdate(q, i, math.MaxInt64/2); x != nil {
			all = append(all, x)
		}
	}
	return all
}

// takeOverLost takes over, as the owner, what others have witnessed of a lost replica. False: one of them is silent.
func (r *replicator) takeOverLost(replica string) bool {
	var parts []uint32
	pl := r.place.Load()
	for p := range r.partitions {
		if pl.owner[p] == r.self && pl.replica[p] == replica {
			parts = append(parts, uint32(p))
		}
	}
	if len(parts) == 0 {
		return true
	}
	q, byPart := r.peers.ask(replica, parts...), map[int][]*shard.Update{}
	for _, x := range q.all {
		byPart[x.Part] = append(byPart[x.Part], x)
	}
	for p, some := range byPart {
		m := &shard.Lost{Replica: replica, Witnessed: some}
		if r.step(p, m); m.Stopped {
			r.mover.takeOverSoon(p)
		}
	}
	return q.ok
}
