package ratelimit

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/firewall"
	"castellan/domain/window"
)

// What an owner counts its stand-in knows. Admissions of a partition are
// numbered; the upper half of a number, its term, grows whenever somebody else
// begins to decide about the partition. A stand-in takes what the owner tells it
// as long as it has not decided itself, and says so when it has.

// term is where the term of a number begins.
const term = 32

// copied is what a stand-in is told: that something was counted, or the state of
// a partition.
type copied struct {
	part   int
	number uint64
	demand firewall.Demand
	taken  bool          // it was taken back
	count  int64         // how many
	ahead  int64         // nanoseconds: as of so much later
	gate   *gate         // whose decision waits for it; nil: it was made known already
	state  *pb.RateState // instead of a demand
}

func (x *copied) term() uint64 {
	if x.state != nil {
		return x.state.Number >> term
	}
	return x.number >> term
}

// copyTo sends to a stand-in. The caller holds the partition's lock, so that
// what is told of a partition arrives in order.
func (c *Counter) copyTo(next string, x *copied) { c.way(next).copies.put(x) }

// maxCopy bounds the states in one message, in keys and admissions.
const maxCopy = 1 << 17

// sendCopies is the way's: one batch to a stand-in.
func (c *Counter) sendCopies(m *member, batch []*copied) {
	q, text := &pb.RateCopy{}, []byte(nil)
	begin, weight := 0, 0
	for i, x := range batch {
		if x.state != nil {
			if weight += len(x.state.Keys) + len(x.state.Ages); weight > maxCopy && i > begin {
				c.sendCopy(m, q, batch[begin:i])
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
		q.Taken = append(q.Taken, x.taken)
		q.Counts = append(q.Counts, x.count)
		q.Aheads = append(q.Aheads, x.ahead)
	}
	c.sendCopy(m, q, batch[begin:])
}

// sendCopy sends one message. When it is not confirmed, either the stand-in is
// gone, and the owner goes on without one until it is heard again; or this node
// was frozen or cut off, and the stand-in may have decided meanwhile: then what
// waits does not hold. Somebody's answer tells which.
func (c *Counter) sendCopy(m *member, q *pb.RateCopy, of []*copied) {
	c.copies.Add(1)
	c.copied.Add(int64(len(q.Parts)))
	began := c.table.Instant()
	got, err := c.net.Ask(c.ctx, copyTime, m.id, copyName, q)
	answer, ok := got.(*pb.RateCopied)
	if ok = ok && err == nil; !ok {
		c.unheard(m, of, c.slept(began, copyTime))
		return
	}
	if m.deaf.Swap(false) {
		c.retell(m.id)
	}
	for _, p := range answer.Ahead {
		c.overtaken(int(p), m.id, of)
	}
	for _, x := range of {
		switch {
		case x.gate != nil:
			x.gate.finish()
		case x.state != nil && !x.state.More && !slices.Contains(answer.Ahead, uint32(x.part)) && !slices.Contains(answer.Needs, uint32(x.part)):
			c.table.Enter(x.part, func(*firewall.Part) {
				if !m.deaf.Load() {
					c.roles[x.part].shared()
				}
			})
		}
	}
	for _, p := range answer.Needs {
		c.untell(int(p))
		c.tell(int(p))
	}
}

// unheard decides about copies that a stand-in did not confirm, and about those
// that wait behind them.
func (c *Counter) unheard(m *member, of []*copied, slept bool) {
	holds := m.deaf.Load()
	if !holds {
		if holds = !slept && c.goesOn(m.id); holds {
			m.deaf.Store(true)
			of = slices.Concat(of, m.copies.waiting()) // nor does what comes next wait
			c.unconfirmed(of)
		}
	}
	for _, x := range of {
		c.untell(x.part) // nobody knows what of it arrived
		if g := x.gate; g != nil {
			x.gate = nil
			if !holds || !c.net.Belongs() {
				g.wait.void.Store(true)
			}
			g.finish()
		}
	}
	if !holds {
		c.kick()
	}
}

// untell has the stand-in of a partition told its whole state anew by the next
// tell.
func (c *Counter) untell(p int) {
	if p >= 0 && p < len(c.roles) {
		c.table.Enter(p, func(*firewall.Part) { c.roles[p].told = false })
	}
}

// kick has settle look at everything.
func (c *Counter) kick() {
	select {
	case c.moves <- struct{}{}:
	default:
	}
}

// slept tells whether this node did not run for a while: what it waited for may
// have come in time.
func (c *Counter) slept(since int64, waited time.Duration) bool {
	return c.table.Instant()-since > 2*int64(waited)
}

// unconfirmed notes that admissions hold which only this node knows of.
func (c *Counter) unconfirmed(of []*copied) {
	for _, x := range of {
		if x.state == nil {
			c.table.Enter(x.part, func(*firewall.Part) { c.roles[x.part].owe(x) })
		}
	}
}

// goesOn tells whether an owner may go on without a stand-in that did not answer:
// that one is gone, or it still does not answer and somebody else does.
func (c *Counter) goesOn(next string) bool {
	if c.net.Lost(next) {
		return true
	}
	pl := c.place.Load()
	asked, heard := 0, make(chan string, len(pl.seats)+1)
	ask := func(id string) {
		asked++
		if !c.aside(func() {
			if _, err := c.net.Ask(c.ctx, copyTime, id, copyName, &pb.RateCopy{}); err != nil {
				id = ""
			}
			heard <- id
		}) {
			heard <- ""
		}
	}
	ask(next)
	for _, id := range pl.seats {
		if id != next && id != c.self {
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
func (c *Counter) overtaken(p int, by string, of []*copied) {
	if p < 0 || p >= len(c.roles) {
		return
	}
	c.table.Enter(p, func(*firewall.Part) {
		r := &c.roles[p]
		// What was sent before this node took over what the stand-in knew says nothing
		// of what it knows now.
		now := r.number >> term
		if r.state == held && slices.ContainsFunc(of, func(x *copied) bool { return x.part == p && x.term() == now }) {
			r.rest()
			r.from = by
		}
		for _, x := range of {
			switch {
			case x.part != p || x.state != nil || x.number <= r.gone:
			case x.gate != nil:
				x.gate.wait.void.Store(true)
			case !x.taken && x.term() == now && !slices.Contains(r.owed, x):
				r.owe(x)
			}
		}
	})
	c.activateSoon(p)
}

// retell tells a stand-in everything anew that it stands in for: it was not heard
// for a while, and may not have heard either.
func (c *Counter) retell(next string) {
	pl := c.place.Load()
	for p := range c.roles {
		if pl.owner[p] == c.self && pl.next[p] == next {
			c.untell(p)
		}
	}
	c.kick()
}

// tell gives the stand-in of a partition its whole state, unless it has it.
func (c *Counter) tell(p int) {
	c.table.Enter(p, func(part *firewall.Part) {
		r, next := &c.roles[p], c.place.Load().next[p]
		if r.state != held || r.told || next == "" {
			return
		}
		r.told = true
		for _, s := range c.pieces(p, part, nil) {
			c.copyTo(next, &copied{part: p, state: s})
		}
	})
}

// receiveCopy is the stand-in's side.
func (c *Counter) receiveCopy(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RateCopy)
	n := 0
	if ok {
		n, ok = len(q.Parts), copyFits(q)
	}
	back := &pb.RateCopied{}
	if !ok {
		answer(back)
		return
	}
	say := func(p uint32, what reply) {
		switch what {
		case ahead:
			back.Ahead = append(back.Ahead, p)
		case needs:
			back.Needs = append(back.Needs, p)
		}
	}
	states := q.States
	for i := range n + 1 {
		for len(states) > 0 && (int(states[0].Behind) <= i || i == n) {
			say(states[0].Part, c.takeState(from, states[0]))
			states = states[1:]
		}
		if i == n {
			break
		}
		key, valid := parseKey(q.Keys[i])
		if !valid || int(q.Parts[i]) != key.Partition() || q.Limits[i] < 1 || q.Periods[i] < 1 {
			continue
		}
		x := &copied{part: int(q.Parts[i]), number: q.Numbers[i], taken: q.Taken[i], count: 1,
			demand: firewall.Demand{Key: key, Limit: q.Limits[i], Period: time.Duration(q.Periods[i])}}
		if len(q.Counts) > 0 {
			x.count, x.ahead = min(q.Counts[i], window.MaxExact), min(max(q.Aheads[i], 0), maxLead*1000)
		}
		say(q.Parts[i], c.takeCopy(x, false))
	}
	answer(back)
}

// reply is what a stand-in says of a copy.
type reply int

const (
	fine  reply = iota
	ahead       // it has decided itself
	needs       // it has not what came before
)

// lack begins to wait for a state. What comes otherwise than by copies, which are
// in order with it, may come before it and not be in it. filled ends that.
func (r *role) lack() {
	if !r.lacks {
		r.lacks, r.since, r.late = true, r.number, nil
	}
}

func (r *role) filled() { r.lacks, r.late = false, nil }

// addLate counts what is not in a state that goes up to a number.
func (c *Counter) addLate(part *firewall.Part, all []*copied, above uint64) {
	for _, x := range all {
		if x.number > above && !x.taken {
			part.Make(x.demand.Key).Add(c.table.Instant(), x.ahead, x.count, ruleOf(&x.demand))
		}
	}
}

// maxLate is how much is kept while a state is waited for, before a later state is
// waited for instead.
const maxLate = 1 << 12

// takeCopy notes an admission of the owner, which this node hears of by a copy or
// as the one who asked.
func (c *Counter) takeCopy(x *copied, asked bool) (what reply) {
	c.table.Enter(x.part, func(part *firewall.Part) {
		r := &c.roles[x.part]
		switch {
		case r.state == held || r.stands || x.number>>term < r.number>>term:
			what = ahead
			return
		case x.number <= r.base:
			return // it was in the state
		case x.number>>term > r.number>>term:
			r.state, r.whole, what = idle, false, needs
			r.lack()
		}
		r.number = max(r.number, x.number)
		if asked && r.lacks {
			if r.late = append(r.late, x); len(r.late) > maxLate {
				r.filled()
				r.lack()
			}
		}
		if w := part.Find(x.demand.Key); x.taken && w != nil {
			for range x.count {
				w.ForgetNewest()
			}
		} else if !x.taken {
			part.Make(x.demand.Key).Add(c.table.Instant(), x.ahead, x.count, ruleOf(&x.demand))
		}
	})
	return what
}

// noteStandIn is takeCopy for an admission that this node, the stand-in in the
// eyes of the owner, hears of as the one who asked for it. False: it does not hold.
func (c *Counter) noteStandIn(d *firewall.Demand, number uint64) bool {
	return number == 0 || c.takeCopy(&copied{part: d.Key.Partition(), number: number, demand: *d, count: 1}, true) != ahead
}

// takeState takes over the state of a partition, or a piece of it.
func (c *Counter) takeState(from string, s *pb.RateState) (what reply) {
	if int(s.Part) >= len(c.roles) {
		return fine
	}
	c.table.Enter(int(s.Part), func(part *firewall.Part) {
		r := &c.roles[s.Part]
		switch {
		case r.state == held || r.stands || s.Number>>term < r.number>>term:
			what = ahead
			return
		case s.Was != 0:
			if r.number != s.Was {
				r.whole, what = false, needs
				r.lack()
				return
			}
			r.number, r.base, r.whole, r.source = s.Number, s.Number, true, from
			r.filled()
			r.shared()
			return
		case s.Next && r.skips:
			return
		case !s.Next:
			if r.skips = r.lacks && r.since > s.Number || !r.lacks && r.number > s.Number; r.skips {
				what = needs
				r.lack()
				return
			}
			part.Clear()
			r.state, r.from, r.whole = idle, "", false
			r.shared()
		}
		c.add(part, s)
		if !s.More {
			r.number, r.base, r.whole, r.source = max(r.number, s.Number), s.Number, true, from
			c.addLate(part, r.late, r.base)
			r.filled()
		}
	})
	return what
}
