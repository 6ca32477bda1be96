package ratelimit

import (
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/ratelimit"
)

// role is what this node is to a partition. The table's lock of the partition
// guards it.
type partition struct {
	state        state
	number       uint64    // of the last admission, see term
	unreplicated []*update // what was counted and nobody else may know of
	unlisted     bool      // and there is more of it

	// As owner, or as the one that will be.
	replica    string // the stand-in, which may decide without this node
	stateSent  bool   // it was given the state
	pullFrom   string // a stand-in that has decided, or may have: it knows more than this node
	takingOver bool   // the partition is being taken over
	notBefore  int64  // it is not to be before

	// As stand-in.
	whole          bool      // it has all that the owner has,
	source         string    // which is this one
	stands         bool      // it has decided itself
	stateNumber    uint64    // what came with the state
	skipChunks     bool      // the pieces of a state that follow are not wanted
	awaitsState    bool      // it waits for a state
	awaitsNumber   uint64    // and for one that has this
	heardMeanwhile []*update // and what it heard of as the one who asked meanwhile

	// As the one that was something.
	handoffs      uint32 // how often the state was given away
	handoffNumber uint64 // and with which number
	dropAt        int64  // how long a state is kept that is nobody's here; 0: it is
}

type state uint8

const (
	idle    state = iota
	stopped       // this node decided last; it has stopped, and nobody has taken over yet
	owning        // this node decides
)

const (
	// awayTime is how long a node stays away from a partition that it gave away: it
	// may not know yet that it is another's.
	handedOverTime = 2 * time.Second
	// pullTime is how long a former owner may take to give a partition away. One
	// that says nothing for so long does not know any more that it belongs.
	pullTimeout = 1250 * time.Millisecond
	// closeTime is how long it waits for its stand-in meanwhile.
	closeTimeout = pullTimeout / 3
)

// activateSoon is activate for callers that do not wait.
func (l *Limiter) takeOverSoon(p int) { l.inBackground(func() { l.takeOver(p) }) }

// activate takes over a partition that is this node's: from the stand-in that
// has decided in its place, or from whoever had it lately, or, when they are
// gone, with what it knows as their stand-in.
func (l *Limiter) takeOver(p int) {
	var from string
	var handoffs uint32
	begin, bare := false, false
	q := &pb.RatePull{Part: uint32(p)}
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		r, pl := &l.partitions[p], l.place.Load()
		if pl.owner[p] != l.self || r.state == owning || r.takingOver || l.table.Instant() < r.notBefore || !l.net.Belongs() {
			return
		}
		r.takingOver, begin = true, true
		from, handoffs, bare = r.pullFrom, r.handoffs, windows.Len() == 0 && !r.complete() && !r.hasUnreplicated()
		q.Number, q.Back, q.Close = r.known(), from != "", from != "" && from != pl.replica[p]
	})
	if !begin {
		return
	}
	found, ready := l.pullDeciders(from, q)
	if len(found) == 0 && bare {
		found = l.pullAnybody(p)
	}
	l.table.WithPartition(p, func(windows *ratelimit.Partition) {
		r, pl := &l.partitions[p], l.place.Load()
		r.takingOver = false
		if !ready {
			r.notBefore = l.table.Instant() + int64(100*time.Millisecond)
			return
		}
		if r.handoffs != handoffs || r.pullFrom != from || pl.owner[p] != l.self || !l.net.Belongs() {
			return
		}
		var known *transfer // by whoever gave it, as by this node
		for _, g := range found {
			l.pulled.Add(1)
			switch l.merge(p, windows, r, g) {
			case replaced:
				known = g
			case merged:
				known = nil
			}
		}
		r.state, r.stands, r.pullFrom, r.replica, r.stateSent = owning, false, "", pl.replica[p], false
		r.stateArrived()
		r.number = (r.number>>term + 2) << term
		if next := pl.replica[p]; known != nil && next == known.by && !r.hasUnreplicated() {
			l.replicate(next, &update{part: p, state: &pb.RateState{Part: uint32(p), Number: r.number, Was: known.states[0].Number}})
			r.stateSent = true
		}
		r.unlisted, r.unreplicated = pl.alone, nil
	})
	l.sendState(p)
}

// given is a state that another member gave away.
type transfer struct {
	states  []*pb.RateState
	by      string
	replica bool // as a stand-in that may have decided
}

// gather has all that may have decided about a partition stop, and give what they
// know. Not ready: another member owns it by now, and this node will hear of it.
func (l *Limiter) pullDeciders(from string, q *pb.RatePull) (all []*transfer, ready bool) {
	if from != "" {
		if got, ok := l.pull(from, pullTimeout, q); ok && got[0].Refused {
			return nil, false
		} else if ok && got[0].Was == 0 {
			all = append(all, &transfer{got, from, true})
		}
	}
	former := slices.DeleteFunc(l.net.Former(Kind, strconv.Itoa(int(q.Part))), func(id string) bool { return id == from })
	return append(all, l.pullAll(former, &pb.RatePull{Part: q.Part, Number: q.Number})...), true
}

// pullAll pulls from those of some members that give what they have.
func (l *Limiter) pullAll(ids []string, q *pb.RatePull) (all []*transfer) {
	for _, id := range ids {
		if got, ok := l.pull(id, pullTimeout, q); ok && !got[0].Refused {
			all = append(all, &transfer{got, id, false})
		}
	}
	return all
}

// anybody looks for the state of a partition whose former owner went before it was
// asked: whoever stood in for that one has it.
func (l *Limiter) pullAnybody(p int) []*transfer {
	others := slices.DeleteFunc(slices.Clone(l.place.Load().members), func(id string) bool { return id == l.self })
	return l.pullAll(others, &pb.RatePull{Part: uint32(p), Back: true})
}

// complete tells whether everything that was counted is known here, or was when
// this node heard of it last.
func (r *partition) complete() bool { return r.state != idle || r.stands || r.whole }

// owe notes an admission that nobody else may know of.
func (r *partition) noteUnreplicated(x *update) {
	if r.unlisted = r.unlisted || len(r.unreplicated) >= maxRemembered; r.unlisted {
		r.unreplicated = nil
	} else {
		r.unreplicated = append(r.unreplicated, x)
	}
}

// sole tells whether something was counted that nobody else may know of; shared
// notes that it is known.
func (r *partition) hasUnreplicated() bool { return r.unlisted || len(r.unreplicated) > 0 }
func (r *partition) allReplicated()        { r.unlisted, r.unreplicated = false, nil }

// known is up to which number a stand-in has nothing to tell, unless it has
// decided itself; 0: it has.
func (r *partition) known() uint64 {
	switch {
	case !r.complete():
		return 0
	case r.hasUnreplicated():
		return math.MaxUint64
	}
	return r.number
}

// What became of a state that was given to this node.
type mergeResult int

const (
	keptOwn  mergeResult = iota // this node knows more
	replaced                    // it is the state here too
	merged                      // each knew what the other did not: both count
)

// adopt makes the state of another this node's, if that one has decided in its
// place or else knows more. When each may know what the other does not both count:
// rather twice than not at all.
func (l *Limiter) merge(p int, part *ratelimit.Partition, r *partition, g *transfer) (what mergeResult) {
	s := g.states[0]
	more := g.replica || s.Number >= r.number
	both := r.unlisted || // nobody knows what is more here,
		s.Partial && more && s.Number != r.number || // or there,
		s.Held && !g.replica && r.state == stopped // or both have decided
	switch {
	case both && len(s.Keys) == 0: // there is nothing to add
	case both && part.Len() > 0:
		own := l.chunks(p, part, nil)
		part.Clear()
		l.addAll(part, append(own, g.states...))
		l.merged.Add(1)
		what = merged
	case both || more && !(s.Partial && r.complete()):
		part.Clear()
		for _, s := range g.states {
			l.add(part, s)
		}
		l.addMissing(part, r.unreplicated, 0)
		what = replaced
		if s.Partial {
			what = merged
		}
	}
	r.number = max(r.number, s.Number)
	return what
}

// pull has a member stop deciding about a partition and give its state. Not ok:
// the member is gone, or silent.
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

// receivePull gives a partition away.
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
	l.inBackground(func() { // it may take a while, and others wait for this goroutine
		if !q.Back && len(q.After) == 0 {
			l.stopHere(int(q.Part), from)
		}
		answer(l.handOver(from, q))
	})
}

// close stops this node deciding about a partition, and has its stand-in stop
// too: it may have decided what this node does not know of.
func (l *Limiter) stopHere(p int, besides string) {
	var from string
	q := &pb.RatePull{Part: uint32(p), Back: true, Close: true}
	l.table.WithPartition(p, func(*ratelimit.Partition) {
		r := &l.partitions[p]
		r.stopDeciding()
		from, q.Number = r.pullFrom, r.known()
	})
	if from == "" || from == besides {
		return
	}
	got, ok := l.pull(from, closeTimeout, q)
	l.table.WithPartition(p, func(part *ratelimit.Partition) {
		r := &l.partitions[p]
		if r.state != stopped || r.pullFrom != from {
			return
		}
		r.pullFrom = ""
		if ok && !got[0].Refused && got[0].Was == 0 {
			l.merge(p, part, r, &transfer{got, from, true})
		}
	})
}

// rest has an owner stop deciding.
func (r *partition) stopDeciding() {
	if r.state == owning {
		r.state, r.pullFrom, r.replica = stopped, r.replica, ""
	}
}

// giveAway is a piece of the state of a partition for a member that decides about it
// from now on.
func (l *Limiter) handOver(to string, q *pb.RatePull) (s *pb.RateState) {
	p := int(q.Part)
	l.table.WithPartition(p, func(part *ratelimit.Partition) {
		r := &l.partitions[p]
		if len(q.After) > 0 {
			s = l.chunks(p, part, q.After)[0]
			return
		}
		if q.Back && r.state == owning {
			s = &pb.RateState{Part: q.Part, Refused: true}
			return
		}
		if q.Back && r.state == idle && !r.stands && q.Number != 0 && q.Number >= r.number {
			s = &pb.RateState{Part: q.Part, Was: q.Number} // whoever asks has it all
		} else {
			s = l.chunks(p, part, nil)[0]
			s.Partial, s.Held = !r.complete(), r.state != idle || r.stands
		}
		r.whole = !q.Close && r.complete() && r.number >= q.Number
		r.state, r.stands, r.source, r.pullFrom = idle, false, to, ""
		r.allReplicated()
		r.stateArrived()
		r.handoffs++
		r.handoffNumber = r.number
		if !q.Back {
			r.notBefore = l.table.Instant() + int64(handedOverTime)
		}
	})
	return s
}

// maxPiece is how many keys and admissions a piece of a state holds before the
// next one begins.
const maxChunk = 1 << 15

// pieces is the state of a partition, from behind a key on. There is at least
// one.
func (l *Limiter) chunks(p int, part *ratelimit.Partition, after []byte) (all []*pb.RateState) {
	r, now := &l.partitions[p], l.table.Instant()
	type kept struct {
		text []byte
		key  ratelimit.Key
	}
	keys := make([]kept, 0, part.Len())
	for k := range part.Keys() {
		if text := appendKey(nil, k); slices.Compare(text, after) > 0 {
			keys = append(keys, kept{text, k})
		}
	}
	slices.SortFunc(keys, func(a, b kept) int { return slices.Compare(a.text, b.text) })
	s := &pb.RateState{Part: uint32(p), Number: r.number, Next: len(after) > 0, Lead: uint64(reservationTime.Microseconds())}
	all = append(all, s)
	for _, k := range keys {
		w := part.Get(k.key)
		if w.Idle(now) {
			continue
		}
		if len(s.Keys)+len(s.Ages) > maxChunk {
			s.More = true
			s = &pb.RateState{Part: uint32(p), Number: r.number, Next: true, Lead: s.Lead}
			all = append(all, s)
		}
		runs := uint32(0)
		w.Runs(func(instant, count int64) {
			runs++
			s.Ages = append(s.Ages, uint64(max(0, now+int64(reservationTime)-instant))/1000) // never older than it is
			s.Counts = append(s.Counts, uint64(count))
		})
		s.Keys = append(s.Keys, k.text)
		s.Periods = append(s.Periods, w.Period())
		s.Coarse = append(s.Coarse, w.Coarse())
		s.Runs = append(s.Runs, runs)
	}
	return all
}
