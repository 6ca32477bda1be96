package ratelimit

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/sorting"
)

const (
	// handedOverTime is how long a node does not take back a partition that it has handed over: its view of the owner
	// may be out of date.
	handedOverTime = 2 * time.Second
	// pullTimeout bounds how long a former owner may take to hand over. A member that is silent for longer has lost its
	// membership lease.
	pullTimeout = 1250 * time.Millisecond
	// closeTimeout bounds how long that owner waits for its own replica in the meantime.
	closeTimeout = pullTimeout / 3
	// retryTakeOver is the pause after a takeover that another owner refused.
	retryTakeOver = 100 * time.Millisecond
)

// takeOverSoon is takeOver for callers that must not wait.
func (l *Limiter) takeOverSoon(p int) { l.inBackground(func() { l.takeOver(p) }) }

// takeOver makes this node, the owner by the ring, the one that decides. The state comes from the replica that has
// decided in its place, or from the members that had the partition lately. When those are gone, it comes from this
// node's own copy as their replica.
//
// It locks the partition twice and calls other members in between. The second half therefore first checks that the
// partition has not changed.
func (l *Limiter) takeOver(p int) {
	t := l.beginTakeOver(p)
	if t == nil {
		return
	}
	found, ready := l.pullDeciders(t.from, t.pull)
	if len(found) == 0 && t.knowsNothing {
		found = l.pullFromAny(p)
	}
	l.endTakeOver(p, t, found, ready)
	l.sendState(p)
}

// takeover is the result of the first half.
type takeover struct {
	from         string // the replica that may have decided
	handoffs     uint32
	knowsNothing bool
	pull         *pb.RatePull
}

// beginTakeOver is the first half; it returns nil if there is nothing to take over now.
func (l *Limiter) beginTakeOver(p int) (t *takeover) {
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part, pl := &l.partitions[p], l.place.Load()
		if pl.owner[p] != l.self || part.phase == owning || part.takingOver ||
			l.table.Instant() < part.notBefore || !l.net.Belongs() {
			return
		}
		part.takingOver = true
		from := part.pullFrom
		t = &takeover{from: from, handoffs: part.handoffs,
			knowsNothing: windows.Len() == 0 && !part.knowsAll() && !part.hasUnreplicated(),
			pull: &pb.RatePull{Part: uint32(p), Number: part.known(), Back: from != "",
				Close: from != "" && from != pl.replica[p]}}
	})
	return t
}

// endTakeOver is the second half: it merges the collected states and becomes the owner.
func (l *Limiter) endTakeOver(p int, t *takeover, found []*transfer, ready bool) {
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part, pl := &l.partitions[p], l.place.Load()
		part.takingOver = false
		if !ready {
			part.notBefore = l.table.Instant() + int64(retryTakeOver)
			return
		}
		if part.handoffs != t.handoffs || part.pullFrom != t.from || pl.owner[p] != l.self || !l.net.Belongs() {
			return
		}
		var same *transfer // its sender has the same state as this node
		for _, g := range found {
			l.pulled.Add(1)
			switch l.merge(p, windows, part, g) {
			case replaced:
				same = g
			case merged:
				same = nil
			}
		}
		part.own(pl.replica[p])
		if next := pl.replica[p]; same != nil && next == same.by && !part.hasUnreplicated() {
			l.replicate(next, &update{part: p,
				state: &pb.RateState{Part: uint32(p), Number: part.number, Was: same.states[0].Number}})
			part.stateSent = true
		}
		part.unlisted, part.unreplicated = pl.alone, nil
	})
}

// transfer is the state that another member handed over.
type transfer struct {
	states  []*pb.RateState // its chunks
	by      string
	replica bool // by may have decided as a replica
}

// pullDeciders stops every member that may have decided about a partition, and collects their states. Not ready:
// another member already owns it, and its message to this node will follow.
func (l *Limiter) pullDeciders(from string, q *pb.RatePull) (all []*transfer, ready bool) {
	if from != "" {
		if got, ok := l.pull(from, pullTimeout, q); ok && got[0].Refused {
			return nil, false
		} else if ok && got[0].Was == 0 {
			all = append(all, &transfer{got, from, true})
		}
	}
	former := slices.DeleteFunc(l.net.Former(Kind, strconv.Itoa(int(q.Part))),
		func(id string) bool { return id == from })
	return append(all, l.pullAll(former, &pb.RatePull{Part: q.Part, Number: q.Number})...), true
}

// pullAll collects the states of the given members that hand over.
func (l *Limiter) pullAll(ids []string, q *pb.RatePull) (all []*transfer) {
	for _, id := range ids {
		if got, ok := l.pull(id, pullTimeout, q); ok && !got[0].Refused {
			all = append(all, &transfer{got, id, false})
		}
	}
	return all
}

// pullFromAny looks for the state of a partition whose former owner stopped before it was asked. Its replica, whichever
// member that was, has the state.
func (l *Limiter) pullFromAny(p int) []*transfer {
	others := slices.DeleteFunc(slices.Clone(l.place.Load().members), func(id string) bool { return id == l.self })
	return l.pullAll(others, &pb.RatePull{Part: uint32(p), Back: true})
}

// mergeResult is the result of merging a received state.
type mergeResult int

const (
	keptOwn  mergeResult = iota // this node has the newer state
	replaced                    // this node has adopted the other state
	merged                      // each had admissions that the other lacked: both count
)

// merge adopts another member's state if that member has decided in this node's place or has more admissions. If each
// may have admissions that the other lacks, both count. A recent admission in both states has a name and counts once;
// an older one may count twice. None is lost.
func (l *Limiter) merge(p int, windows *ratelimit.Partition, part *partition, g *transfer) (what mergeResult) {
	s := g.states[0]
	more := g.replica || s.Number >= part.number
	both := part.unlisted || // this node has more than its list
		s.Partial && more && s.Number != part.number || // the other may lack admissions
		s.Held && !g.replica && part.phase == stopped // both have decided
	switch {
	case both && len(s.Keys) == 0: // there is nothing to add
	case both && windows.Len() > 0:
		own := l.chunks(p, windows, nil)
		part.forgetAll(windows)
		l.addAll(windows, part, append(own, g.states...))
		l.merged.Add(1)
		what = merged
	case both || more && !(s.Partial && part.knowsAll()):
		part.forgetAll(windows)
		for _, s := range g.states {
			l.add(windows, part, s)
		}
		l.addMissing(windows, part, part.unreplicated, 0)
		what = replaced
		if s.Partial {
			what = merged
		}
	}
	part.number = max(part.number, s.Number)
	return what
}

// pull makes a member stop deciding about a partition and hand over its state. Not ok: the member is gone or
// unreachable.
func (l *Limiter) pull(from string, within time.Duration, q *pb.RatePull) (states []*pb.RateState, ok bool) {
	end := l.table.Instant() + int64(within)
	q = proto.CloneOf(q)
	for l.ctx.Err() == nil && l.table.Instant() < end && !l.net.Lost(from) {
		got, err := l.net.Ask(l.ctx, time.Duration(end-l.table.Instant()), from, pullName, q)
		s, is := got.(*pb.RateState)
		if err != nil || !is || !stateFits(s) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		states = append(states, s)
		if !s.More || len(s.Keys) == 0 {
			return states, true
		}
		q = proto.CloneOf(q)
		q.After = s.Keys[len(s.Keys)-1]
	}
	return nil, false
}

// receivePull hands a partition over or, if a replica lacks states, sends them again.
func (l *Limiter) receivePull(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RatePull)
	if ok && len(q.Tell) > 0 {
		for _, p := range q.Tell {
			l.markUnsent(int(p))
		}
		l.wake()
	}
	if !ok || len(q.Tell) > 0 || int(q.Part) >= len(l.partitions) {
		answer(&pb.RateState{Refused: true})
		return
	}
	l.inBackground(func() { // handing over may wait, and this goroutine must keep reading
		if !q.Back && len(q.After) == 0 {
			l.stopHere(int(q.Part), from)
		}
		answer(l.handOver(from, q))
	})
}

// stopHere stops this node as the owner of a partition, and its replica, which may have decided without this node's
// knowledge. except is the caller, which is not stopped.
func (l *Limiter) stopHere(p int, except string) {
	var from string
	q := &pb.RatePull{Part: uint32(p), Back: true, Close: true}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		part := &l.partitions[p]
		part.stop()
		from, q.Number = part.pullFrom, part.known()
	})
	if from == "" || from == except {
		return
	}
	got, ok := l.pull(from, closeTimeout, q)
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part := &l.partitions[p]
		if part.phase != stopped || part.pullFrom != from {
			return
		}
		part.pullFrom = ""
		if ok && !got[0].Refused && got[0].Was == 0 {
			l.merge(p, windows, part, &transfer{got, from, true})
		}
	})
}

// handOver returns one chunk of a partition's state, for the member that decides from now on.
func (l *Limiter) handOver(to string, q *pb.RatePull) (s *pb.RateState) {
	p := int(q.Part)
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		part := &l.partitions[p]
		if len(q.After) > 0 {
			s = l.chunks(p, windows, q.After)[0]
			return
		}
		if q.Back && part.phase == owning {
			s = &pb.RateState{Part: q.Part, Refused: true}
			return
		}
		if q.Back && !part.hasDecided() && q.Number != 0 && q.Number >= part.number {
			s = &pb.RateState{Part: q.Part, Was: q.Number} // the other member has all of it
		} else {
			s = l.chunks(p, windows, nil)[0]
			s.Partial, s.Held = !part.knowsAll(), part.hasDecided()
		}
		part.give(to, !q.Close && part.knowsAll() && part.number >= q.Number)
		if !q.Back {
			part.notBefore = l.table.Instant() + int64(handedOverTime)
		}
	})
	return s
}

// maxChunk is how many keys and admissions a chunk of a state holds before the next one begins.
const maxChunk = 1 << 15

// chunks returns the state of a partition, starting after a key. It returns at least one chunk. Ages are rounded down.
func (l *Limiter) chunks(p int, windows *ratelimit.Partition, after []byte) (all []*pb.RateState) {
	number, now := l.partitions[p].number, l.table.Instant()
	type kept struct {
		text []byte
		key  ratelimit.Key
	}
	keys := make([]kept, 0, windows.Len())
	for k := range windows.Keys() {
		if text := appendKey(nil, k); bytes.Compare(text, after) > 0 {
			keys = append(keys, kept{text, k})
		}
	}
	sorting.Func(keys, func(a, b kept) int { return bytes.Compare(a.text, b.text) })
	names := l.partitions[p].recent.byKey()
	age := func(instant int64) uint64 { return uint64(max(0, now+int64(reservationTime)-instant)) / 1000 }
	s := &pb.RateState{Part: uint32(p), Number: number, Next: len(after) > 0,
		Lead: uint64(reservationTime.Microseconds())}
	all = append(all, s)
	for _, k := range keys {
		w := windows.Get(k.key)
		if w.Idle(now) {
			continue
		}
		if len(s.Keys)+len(s.Ages) > maxChunk {
			s.More = true
			s = &pb.RateState{Part: uint32(p), Number: number, Next: true, Lead: s.Lead}
			all = append(all, s)
		}
		runs := uint32(0)
		w.Runs(func(instant, count int64) {
			runs++
			s.Ages = append(s.Ages, age(instant))
			s.Counts = append(s.Counts, uint64(count))
		})
		for _, x := range names[k.key.Fingerprint()] {
			s.Ids = append(s.Ids, x.id)
			s.Of = append(s.Of, uint32(len(s.Keys)))
			s.IdAges = append(s.IdAges, age(x.instant))
			s.IdCounts = append(s.IdCounts, uint64(x.count))
		}
		if w.SharedAt(now) {
			s.Shared = append(s.Shared, uint32(len(s.Keys)))
		}
		s.Keys = append(s.Keys, k.text)
		s.Periods = append(s.Periods, w.Period())
		s.Coarse = append(s.Coarse, w.Coarse())
		s.Runs = append(s.Runs, runs)
	}
	return all
}
