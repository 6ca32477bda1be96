package ratelimit

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/ratelimit"
)

// What an owner counts its stand-in knows. Admissions of a partition are
// numbered; the upper half of a number, its term, grows whenever somebody else
// begins to decide about the partition. A stand-in takes what the owner tells it
// as long as it has not decided itself, and says so when it has.

// term is where the term of a number begins.
const term = 32

// copied is what a stand-in is told: that something was counted, or the state of
// a partition.
type update struct {
	part      int
	number    uint64
	demand    ratelimit.Demand
	takenBack bool          // it was taken back
	count     int64         // how many
	ahead     int64         // nanoseconds: as of so much later
	decision  *decision     // whose decision waits for it; nil: it was made known already
	state     *pb.RateState // instead of a demand
}

func (x *update) term() uint64 {
	if x.state != nil {
		return x.state.Number >> term
	}
	return x.number >> term
}

// copyTo sends to a stand-in. The caller holds the partition's lock, so that
// what is told of a partition arrives in order.
func (l *Limiter) replicate(next string, x *update) { l.member(next).updates.put(x) }

// maxCopy bounds the states in one message, in keys and admissions.
const maxStateBatch = 1 << 17

// sendCopies is the way's: one batch to a stand-in.
func (l *Limiter) sendUpdates(m *member, batch []*update) {
	q, text := &pb.RateCopy{}, []byte(nil)
	begin, weight := 0, 0
	for i, x := range batch {
		if x.state != nil {
			if weight += len(x.state.Keys) + len(x.state.Ages); weight > maxStateBatch && i > begin {
				l.sendUpdate(m, q, batch[begin:i])
				q, begin, weight = &pb.RateCopy{}, i, 0
			}
			x.state.Behind = uint32(len(q.Parts))
			q.States = append(q.States, x.state)
			continue
		}
		q.Parts = append(q.Parts, uint32(x.part))
		q.Numbers = append(q.Numbers, x.number)
		start := len(text)
		text = appendKey(text, x.demand.Key)
		q.Keys = append(q.Keys, text[start:len(text):len(text)])
		q.Limits = append(q.Limits, x.demand.Limit)
		q.Periods = append(q.Periods, int64(x.demand.Period))
		q.Taken = append(q.Taken, x.takenBack)
		q.Counts = append(q.Counts, x.count)
		q.Aheads = append(q.Aheads, x.ahead)
	}
	l.sendUpdate(m, q, batch[begin:])
}

// sendCopy sends one message. When it is not confirmed, either the stand-in is
// gone, and the owner goes on without one until it is heard again; or this node
// was frozen or cut off, and the stand-in may have decided meanwhile: then what
// waits does not hold. Somebody's answer tells which.
func (l *Limiter) sendUpdate(m *member, q *pb.RateCopy, updates []*update) {
	l.copies.Add(1)
	l.copied.Add(int64(len(q.Parts)))
	began := l.table.Instant()
	got, err := l.net.Ask(l.ctx, replicateTimeout, m.id, updateName, q)
	answer, ok := got.(*pb.RateCopied)
	if ok = ok && err == nil; !ok {
		l.updatesFailed(m, updates, l.wasPaused(began, replicateTimeout))
		return
	}
	if m.replicaUnreachable.Swap(false) {
		l.resendStates(m.id)
	}
	for _, p := range answer.Ahead {
		l.superseded(int(p), m.id, updates)
	}
	for _, x := range updates {
		switch {
		case x.decision != nil:
			x.decision.finish()
		case x.state != nil && !x.state.More && !slices.Contains(answer.Ahead, uint32(x.part)) && !slices.Contains(answer.Needs, uint32(x.part)):
			l.table.WithPartition(x.part, func(*ratelimit.Partition) {
				if !m.replicaUnreachable.Load() {
					l.partitions[x.part].allReplicated()
				}
			})
		}
	}
	for _, p := range answer.Needs {
		l.markUnsent(int(p))
		l.sendState(int(p))
	}
}

// unheard decides about copies that a stand-in did not confirm, and about those
// that wait behind them.
func (l *Limiter) updatesFailed(m *member, updates []*update, slept bool) {
	holds := m.replicaUnreachable.Load()
	if !holds {
		if holds = !slept && l.mayGoOnWithout(m.id); holds {
			m.replicaUnreachable.Store(true)
			updates = slices.Concat(updates, m.updates.waiting()) // nor does what comes next wait
			l.noteUnreplicated(updates)
		}
	}
	for _, x := range updates {
		l.markUnsent(x.part) // nobody knows what of it arrived
		if g := x.decision; g != nil {
			x.decision = nil
			if !holds || !l.net.Belongs() {
				g.pending.failed.Store(true)
			}
			g.finish()
		}
	}
	if !holds {
		l.wake()
	}
}

// untell has the stand-in of a partition told its whole state anew by the next
// tell.
func (l *Limiter) markUnsent(p int) {
	if p >= 0 && p < len(l.partitions) {
		l.table.WithPartition(p, func(*ratelimit.Partition) { l.partitions[p].stateSent = false })
	}
}

// kick has settle look at everything.
func (l *Limiter) wake() {
	select {
	case l.changes <- struct{}{}:
	default:
	}
}

// slept tells whether this node did not run for a while: what it waited for may
// have come in time.
func (l *Limiter) wasPaused(since int64, waited time.Duration) bool {
	return l.table.Instant()-since > 2*int64(waited)
}

// unconfirmed notes that admissions hold which only this node knows of.
func (l *Limiter) noteUnreplicated(updates []*update) {
	for _, x := range updates {
		if x.state == nil {
			l.table.WithPartition(x.part, func(*ratelimit.Partition) { l.partitions[x.part].noteUnreplicated(x) })
		}
	}
}

// goesOn tells whether an owner may go on without a stand-in that did not answer:
// that one is gone, or it still does not answer and somebody else does.
func (l *Limiter) mayGoOnWithout(next string) bool {
	if l.net.Lost(next) {
		return true
	}
	pl := l.place.Load()
	asked, heard := 0, make(chan string, len(pl.members)+1)
	ask := func(id string) {
		asked++
		if !l.inBackground(func() {
			if _, err := l.net.Ask(l.ctx, replicateTimeout, id, updateName, &pb.RateCopy{}); err != nil {
				id = ""
			}
			heard <- id
		}) {
			heard <- ""
		}
	}
	ask(next)
	for _, id := range pl.members {
		if id != next && id != l.self {
			ask(id)
		}
	}
	others := false
	for range asked {
		switch id := <-heard; id {
		case next:
			return false
		case "":
		default:
			others = true
		}
	}
	return others
}

// overtaken notes that the stand-in has decided about a partition itself, or
// knows of another owner. What waits is decided anew, once this node knows what
// the stand-in does; what was made known already is counted then. What was given
// away with the partition counts where it is now.
func (l *Limiter) superseded(p int, by string, updates []*update) {
	if p < 0 || p >= len(l.partitions) {
		return
	}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		r := &l.partitions[p]
		// What was sent before this node took over what the stand-in knew says nothing
		// of what it knows now.
		now := r.number >> term
		if r.state == owning && slices.ContainsFunc(updates, func(x *update) bool { return x.part == p && x.term() == now }) {
			r.stopDeciding()
			r.pullFrom = by
		}
		for _, x := range updates {
			switch {
			case x.part != p || x.state != nil || x.number <= r.handoffNumber:
			case x.decision != nil:
				x.decision.pending.failed.Store(true)
			case !x.takenBack && x.term() == now && !slices.Contains(r.unreplicated, x):
				r.noteUnreplicated(x)
			}
		}
	})
	l.takeOverSoon(p)
}

// retell tells a stand-in everything anew that it stands in for: it was not heard
// for a while, and may not have heard either.
func (l *Limiter) resendStates(next string) {
	pl := l.place.Load()
	for p := range l.partitions {
		if pl.owner[p] == l.self && pl.replica[p] == next {
			l.markUnsent(p)
		}
	}
	l.wake()
}

// tell gives the stand-in of a partition its whole state, unless it has it.
func (l *Limiter) sendState(p int) {
	l.table.WithPartition(p, func(part *ratelimit.Partition) {
		r, next := &l.partitions[p], l.place.Load().replica[p]
		if r.state != owning || r.stateSent || next == "" {
			return
		}
		r.stateSent = true
		for _, s := range l.chunks(p, part, nil) {
			l.replicate(next, &update{part: p, state: s})
		}
	})
}

// receiveCopy is the stand-in's side.
func (l *Limiter) receiveUpdates(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RateCopy)
	n := 0
	if ok {
		n, ok = len(q.Parts), updateFits(q)
	}
	back := &pb.RateCopied{}
	if !ok {
		answer(back)
		return
	}
	say := func(p uint32, what reply) {
		switch what {
		case superseding:
			back.Ahead = append(back.Ahead, p)
		case stateNeeded:
			back.Needs = append(back.Needs, p)
		}
	}
	states := q.States
	for i := range n + 1 {
		for len(states) > 0 && (int(states[0].Behind) <= i || i == n) {
			say(states[0].Part, l.applyState(from, states[0]))
			states = states[1:]
		}
		if i == n {
			break
		}
		key, valid := parseKey(q.Keys[i])
		if !valid || int(q.Parts[i]) != key.Partition() || q.Limits[i] < 1 || q.Periods[i] < 1 {
			continue
		}
		x := &update{part: int(q.Parts[i]), number: q.Numbers[i], takenBack: q.Taken[i], count: 1,
			demand: ratelimit.Demand{Key: key, Limit: q.Limits[i], Period: time.Duration(q.Periods[i])}}
		if len(q.Counts) > 0 {
			x.count, x.ahead = min(q.Counts[i], ratelimit.MaxExact), min(max(q.Aheads[i], 0), maxLead*1000)
		}
		say(q.Parts[i], l.applyUpdate(x, false))
	}
	answer(back)
}

// reply is what a stand-in says of a copy.
type reply int

const (
	accepted    reply = iota
	superseding       // it has decided itself
	stateNeeded       // it has not what came before
)

// lack begins to wait for a state. What comes otherwise than by copies, which are
// in order with it, may come before it and not be in it. filled ends that.
func (r *partition) awaitState() {
	if !r.awaitsState {
		r.awaitsState, r.awaitsNumber, r.heardMeanwhile = true, r.number, nil
	}
}

func (r *partition) stateArrived() { r.awaitsState, r.heardMeanwhile = false, nil }

// addLate counts what is not in a state that goes up to a number.
func (l *Limiter) addMissing(part *ratelimit.Partition, all []*update, above uint64) {
	for _, x := range all {
		if x.number > above && !x.takenBack {
			part.GetOrCreate(x.demand.Key).Add(l.table.Instant(), x.ahead, x.count, quotaOf(&x.demand))
		}
	}
}

// maxLate is how much is kept while a state is waited for, before a later state is
// waited for instead.
const maxRemembered = 1 << 12

// takeCopy notes an admission of the owner, which this node hears of by a copy or
// as the one who asked.
func (l *Limiter) applyUpdate(x *update, asked bool) (what reply) {
	l.table.WithPartition(x.part, func(part *ratelimit.Partition) {
		r := &l.partitions[x.part]
		switch {
		case r.state == owning || r.stands || x.number>>term < r.number>>term:
			what = superseding
			return
		case x.number <= r.stateNumber:
			return // it was in the state
		case x.number>>term > r.number>>term:
			r.state, r.whole, what = idle, false, stateNeeded
			r.awaitState()
		}
		r.number = max(r.number, x.number)
		if asked && r.awaitsState {
			if r.heardMeanwhile = append(r.heardMeanwhile, x); len(r.heardMeanwhile) > maxRemembered {
				r.stateArrived()
				r.awaitState()
			}
		}
		if w := part.Get(x.demand.Key); x.takenBack && w != nil {
			for range x.count {
				w.ForgetNewest()
			}
		} else if !x.takenBack {
			part.GetOrCreate(x.demand.Key).Add(l.table.Instant(), x.ahead, x.count, quotaOf(&x.demand))
		}
	})
	return what
}

// noteStandIn is takeCopy for an admission that this node, the stand-in in the
// eyes of the owner, hears of as the one who asked for it. False: it does not hold.
func (l *Limiter) applyOwn(d *ratelimit.Demand, number uint64) bool {
	return number == 0 || l.applyUpdate(&update{part: d.Key.Partition(), number: number, demand: *d, count: 1}, true) != superseding
}

// takeState takes over the state of a partition, or a piece of it.
func (l *Limiter) applyState(from string, s *pb.RateState) (what reply) {
	if int(s.Part) >= len(l.partitions) {
		return accepted
	}
	l.table.WithPartition(int(s.Part), func(part *ratelimit.Partition) {
		r := &l.partitions[s.Part]
		switch {
		case r.state == owning || r.stands || s.Number>>term < r.number>>term:
			what = superseding
			return
		case s.Was != 0:
			if r.number != s.Was {
				r.whole, what = false, stateNeeded
				r.awaitState()
				return
			}
			r.number, r.stateNumber, r.whole, r.source = s.Number, s.Number, true, from
			r.stateArrived()
			r.allReplicated()
			return
		case s.Next && r.skipChunks:
			return
		case !s.Next:
			if r.skipChunks = r.awaitsState && r.awaitsNumber > s.Number || !r.awaitsState && r.number > s.Number; r.skipChunks {
				what = stateNeeded
				r.awaitState()
				return
			}
			part.Clear()
			r.state, r.pullFrom, r.whole = idle, "", false
			r.allReplicated()
		}
		l.add(part, s)
		if !s.More {
			r.number, r.stateNumber, r.whole, r.source = max(r.number, s.Number), s.Number, true, from
			l.addMissing(part, r.heardMeanwhile, r.stateNumber)
			r.stateArrived()
		}
	})
	return what
}
