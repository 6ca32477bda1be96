package ratelimit

import (
	"math"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/firewall"
)

// role is what this node is to a partition. The table's lock of the partition
// guards it.
type role struct {
	state  state
	number uint64    // of the last admission, see term
	owed   []*copied // what was counted and nobody else may know of
	fork   bool      // and there is more of it

	// As owner, or as the one that will be.
	helper string // the stand-in, which may decide without this node
	told   bool   // it was given the state
	from   string // a stand-in that has decided, or may have: it knows more than this node
	claim  bool   // the partition is being taken over
	away   int64  // it is not to be before

	// As stand-in.
	whole  bool      // it has all that the owner has,
	source string    // which is this one
	stands bool      // it has decided itself
	base   uint64    // what came with the state
	skips  bool      // the pieces of a state that follow are not wanted
	lacks  bool      // it waits for a state
	since  uint64    // and for one that has this
	late   []*copied // and what it heard of as the one who asked meanwhile

	// As the one that was something.
	gen  uint32 // how often the state was given away
	gone uint64 // and with which number
	keep int64  // how long a state is kept that is nobody's here; 0: it is
}

type state uint8

const (
	idle  state = iota
	rests       // this node decided last; it has stopped, and nobody has taken over yet
	held        // this node decides
)

const (
	// awayTime is how long a node stays away from a partition that it gave away: it
	// may not know yet that it is another's.
	awayTime = 2 * time.Second
	// pullTime is how long a former owner may take to give a partition away. One
	// that says nothing for so long does not know any more that it belongs.
	pullTime = 1250 * time.Millisecond
	// closeTime is how long it waits for its stand-in meanwhile.
	closeTime = pullTime / 3
)

// activateSoon is activate for callers that do not wait.
func (c *Counter) activateSoon(p int) { c.aside(func() { c.activate(p) }) }

// activate takes over a partition that is this node's: from the stand-in that
// has decided in its place, or from whoever had it lately, or, when they are
// gone, with what it knows as their stand-in.
func (c *Counter) activate(p int) {
	var from string
	var gen uint32
	begin, bare := false, false
	q := &pb.RatePull{Part: uint32(p)}
	c.table.Enter(p, func(part *firewall.Part) {
		r, pl := &c.roles[p], c.place.Load()
		if pl.owner[p] != c.self || r.state == held || r.claim || c.table.Instant() < r.away || !c.net.Belongs() {
			return
		}
		r.claim, begin = true, true
		from, gen, bare = r.from, r.gen, part.Len() == 0 && !r.complete() && !r.sole()
		q.Number, q.Back, q.Close = r.known(), from != "", from != "" && from != pl.next[p]
	})
	if !begin {
		return
	}
	found, ready := c.gather(from, q)
	if len(found) == 0 && bare {
		found = c.anybody(p)
	}
	c.table.Enter(p, func(part *firewall.Part) {
		r, pl := &c.roles[p], c.place.Load()
		r.claim = false
		if !ready {
			r.away = c.table.Instant() + int64(100*time.Millisecond)
			return
		}
		if r.gen != gen || r.from != from || pl.owner[p] != c.self || !c.net.Belongs() {
			return
		}
		var known *given // by whoever gave it, as by this node
		for _, g := range found {
			c.pulled.Add(1)
			switch c.adopt(p, part, r, g) {
			case taken:
				known = g
			case merged:
				known = nil
			}
		}
		r.state, r.stands, r.from, r.helper, r.told = held, false, "", pl.next[p], false
		r.filled()
		r.number = (r.number>>term + 2) << term
		if next := pl.next[p]; known != nil && next == known.by && !r.sole() {
			c.copyTo(next, &copied{part: p, state: &pb.RateState{Part: uint32(p), Number: r.number, Was: known.states[0].Number}})
			r.told = true
		}
		r.fork, r.owed = pl.alone, nil
	})
	c.tell(p)
}

// given is a state that another member gave away.
type given struct {
	states []*pb.RateState
	by     string
	stood  bool // as a stand-in that may have decided
}

// gather has all that may have decided about a partition stop, and give what they
// know. Not ready: another member owns it by now, and this node will hear of it.
func (c *Counter) gather(from string, q *pb.RatePull) (all []*given, ready bool) {
	if from != "" {
		if got, ok := c.pull(from, pullTime, q); ok && got[0].Refused {
			return nil, false
		} else if ok && got[0].Was == 0 {
			all = append(all, &given{got, from, true})
		}
	}
	former := slices.DeleteFunc(c.net.Former(Kind, strconv.Itoa(int(q.Part))), func(id string) bool { return id == from })
	return append(all, c.pullAll(former, &pb.RatePull{Part: q.Part, Number: q.Number})...), true
}

// pullAll pulls from those of some members that give what they have.
func (c *Counter) pullAll(ids []string, q *pb.RatePull) (all []*given) {
	for _, id := range ids {
		if got, ok := c.pull(id, pullTime, q); ok && !got[0].Refused {
			all = append(all, &given{got, id, false})
		}
	}
	return all
}

// anybody looks for the state of a partition whose former owner went before it was
// asked: whoever stood in for that one has it.
func (c *Counter) anybody(p int) []*given {
	others := slices.DeleteFunc(slices.Clone(c.place.Load().seats), func(id string) bool { return id == c.self })
	return c.pullAll(others, &pb.RatePull{Part: uint32(p), Back: true})
}

// complete tells whether everything that was counted is known here, or was when
// this node heard of it last.
func (r *role) complete() bool { return r.state != idle || r.stands || r.whole }

// owe notes an admission that nobody else may know of.
func (r *role) owe(x *copied) {
	if r.fork = r.fork || len(r.owed) >= maxLate; r.fork {
		r.owed = nil
	} else {
		r.owed = append(r.owed, x)
	}
}

// sole tells whether something was counted that nobody else may know of; shared
// notes that it is known.
func (r *role) sole() bool { return r.fork || len(r.owed) > 0 }
func (r *role) shared()    { r.fork, r.owed = false, nil }

// known is up to which number a stand-in has nothing to tell, unless it has
// decided itself; 0: it has.
func (r *role) known() uint64 {
	switch {
	case !r.complete():
		return 0
	case r.sole():
		return math.MaxUint64
	}
	return r.number
}

// What became of a state that was given to this node.
type fate int

const (
	left   fate = iota // this node knows more
	taken              // it is the state here too
	merged             // each knew what the other did not: both count
)

// adopt makes the state of another this node's, if that one has decided in its
// place or else knows more. When each may know what the other does not both count:
// rather twice than not at all.
func (c *Counter) adopt(p int, part *firewall.Part, r *role, g *given) (what fate) {
	s := g.states[0]
	more := g.stood || s.Number >= r.number
	both := r.fork || // nobody knows what is more here,
		s.Partial && more && s.Number != r.number || // or there,
		s.Held && !g.stood && r.state == rests // or both have decided
	switch {
	case both && len(s.Keys) == 0: // there is nothing to add
	case both && part.Len() > 0:
		own := c.pieces(p, part, nil)
		part.Clear()
		c.addAll(part, append(own, g.states...))
		c.merged.Add(1)
		what = merged
	case both || more && !(s.Partial && r.complete()):
		part.Clear()
		for _, s := range g.states {
			c.add(part, s)
		}
		c.addLate(part, r.owed, 0)
		what = taken
		if s.Partial {
			what = merged
		}
	}
	r.number = max(r.number, s.Number)
	return what
}

// pull has a member stop deciding about a partition and give its state. Not ok:
// the member is gone, or silent.
func (c *Counter) pull(from string, within time.Duration, q *pb.RatePull) (states []*pb.RateState, ok bool) {
	end := c.table.Instant() + int64(within)
	q = proto.CloneOf(q)
	for c.ctx.Err() == nil && c.table.Instant() < end && !c.net.Lost(from) {
		got, err := c.net.Ask(c.ctx, time.Duration(end-c.table.Instant()), from, pullName, q)
		s, is := got.(*pb.RateState)
		if err != nil || !is || !sound(s) {
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
func (c *Counter) receivePull(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RatePull)
	if ok && len(q.Tell) > 0 {
		for _, p := range q.Tell {
			c.untell(int(p))
		}
		c.kick()
	}
	if !ok || len(q.Tell) > 0 || int(q.Part) >= len(c.roles) {
		answer(&pb.RateState{Refused: true})
		return
	}
	c.aside(func() { // it may take a while, and others wait for this goroutine
		if !q.Back && len(q.After) == 0 {
			c.close(int(q.Part), from)
		}
		answer(c.giveAway(from, q))
	})
}

// close stops this node deciding about a partition, and has its stand-in stop
// too: it may have decided what this node does not know of.
func (c *Counter) close(p int, besides string) {
	var from string
	q := &pb.RatePull{Part: uint32(p), Back: true, Close: true}
	c.table.Enter(p, func(*firewall.Part) {
		r := &c.roles[p]
		r.rest()
		from, q.Number = r.from, r.known()
	})
	if from == "" || from == besides {
		return
	}
	got, ok := c.pull(from, closeTime, q)
	c.table.Enter(p, func(part *firewall.Part) {
		r := &c.roles[p]
		if r.state != rests || r.from != from {
			return
		}
		r.from = ""
		if ok && !got[0].Refused && got[0].Was == 0 {
			c.adopt(p, part, r, &given{got, from, true})
		}
	})
}

// rest has an owner stop deciding.
func (r *role) rest() {
	if r.state == held {
		r.state, r.from, r.helper = rests, r.helper, ""
	}
}

// giveAway is a piece of the state of a partition for a member that decides about it
// from now on.
func (c *Counter) giveAway(to string, q *pb.RatePull) (s *pb.RateState) {
	p := int(q.Part)
	c.table.Enter(p, func(part *firewall.Part) {
		r := &c.roles[p]
		if len(q.After) > 0 {
			s = c.pieces(p, part, q.After)[0]
			return
		}
		if q.Back && r.state == held {
			s = &pb.RateState{Part: q.Part, Refused: true}
			return
		}
		if q.Back && r.state == idle && !r.stands && q.Number != 0 && q.Number >= r.number {
			s = &pb.RateState{Part: q.Part, Was: q.Number} // whoever asks has it all
		} else {
			s = c.pieces(p, part, nil)[0]
			s.Partial, s.Held = !r.complete(), r.state != idle || r.stands
		}
		r.whole = !q.Close && r.complete() && r.number >= q.Number
		r.state, r.stands, r.source, r.from = idle, false, to, ""
		r.shared()
		r.filled()
		r.gen++
		r.gone = r.number
		if !q.Back {
			r.away = c.table.Instant() + int64(awayTime)
		}
	})
	return s
}

// maxPiece is how many keys and admissions a piece of a state holds before the
// next one begins.
const maxPiece = 1 << 15

// pieces is the state of a partition, from behind a key on. There is at least
// one.
func (c *Counter) pieces(p int, part *firewall.Part, after []byte) (all []*pb.RateState) {
	r, now := &c.roles[p], c.table.Instant()
	type kept struct {
		text []byte
		key  firewall.Key
	}
	keys := make([]kept, 0, part.Len())
	for k := range part.Keys() {
		if text := appendKey(nil, k); slices.Compare(text, after) > 0 {
			keys = append(keys, kept{text, k})
		}
	}
	slices.SortFunc(keys, func(a, b kept) int { return slices.Compare(a.text, b.text) })
	s := &pb.RateState{Part: uint32(p), Number: r.number, Next: len(after) > 0, Lead: uint64(leaseTime.Microseconds())}
	all = append(all, s)
	for _, k := range keys {
		w := part.Find(k.key)
		if w.Idle(now) {
			continue
		}
		if len(s.Keys)+len(s.Ages) > maxPiece {
			s.More = true
			s = &pb.RateState{Part: uint32(p), Number: r.number, Next: true, Lead: s.Lead}
			all = append(all, s)
		}
		runs := uint32(0)
		w.Runs(func(instant, count int64) {
			runs++
			s.Ages = append(s.Ages, uint64(max(0, now+int64(leaseTime)-instant))/1000) // never older than it is
			s.Counts = append(s.Counts, uint64(count))
		})
		s.Keys = append(s.Keys, k.text)
		s.Periods = append(s.Periods, w.Period())
		s.Coarse = append(s.Coarse, w.Coarse())
		s.Runs = append(s.Runs, runs)
	}
	return all
}
