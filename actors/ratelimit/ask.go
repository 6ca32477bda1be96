package ratelimit

import (
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/firewall"
	"castellan/domain/window"
)

// Names of the receivers.
const (
	askName  = "rates.ask"
	copyName = "rates.copy"
	pullName = "rates.pull"
)

// What a request is asked about for. Numbers on the wire.
const (
	modeCount    = 0
	modeLook     = 1
	modeStandIn  = 2 // its owner is silent
	modeTakeBack = 3
	modeLease    = 4 // many beforehand; see lease.go
)

// ask is a request on its way to an owner.
type ask struct {
	target
	mode     uint32
	demands  []firewall.Demand
	stands   []window.Standing
	instants []int64 // what each was counted as
	count    int64   // of a lease: how many are wanted, then given; of what is taken back: how many; 0: one
	verdict  verdict
	done     chan bool // gets one: whether there is an answer
	nobody   bool      // waits for it
}

func newAsk() any { return &ask{done: make(chan bool, 1)} }

// ask sends a request to the member that decides about it. Whoever asks waits
// for done, and gives the ask back.
func (c *Counter) ask(t target, mode uint32, count int64, demands ...firewall.Demand) *ask {
	q := c.prepare(t, mode, count, demands)
	c.way(t.member).asks.put(q)
	return q
}

func (c *Counter) prepare(t target, mode uint32, count int64, demands []firewall.Demand) *ask {
	q := c.unused.Get().(*ask)
	q.target, q.mode, q.verdict, q.nobody, q.count = t, mode, silent, false, count
	q.demands, q.instants = append(q.demands[:0], demands...), q.instants[:0]
	q.stands = append(q.stands[:0], make([]window.Standing, len(demands))...)
	return q
}

// takeBack has an owner forget what it has counted. It keeps the ask.
func (c *Counter) takeBack(q *ask) {
	q.mode, q.nobody = modeTakeBack, true
	c.way(q.member).asks.put(q)
}

func (c *Counter) end(q *ask, answered bool) {
	if !q.nobody {
		q.done <- answered
		return
	}
	c.unused.Put(q)
}

// sendAsks is the way's: one batch to an owner.
func (c *Counter) sendAsks(m *member, batch []*ask) {
	c.batches.Add(1)
	c.asked.Add(int64(len(batch)))
	n := 0
	for _, q := range batch {
		n += len(q.demands)
	}
	question := &pb.RateAsk{Counts: make([]int64, 0, n), Keys: make([][]byte, 0, n), Limits: make([]int64, 0, n), Periods: make([]int64, 0, n), Instants: make([]int64, 0, n),
		Sizes: make([]uint32, 0, len(batch)), Modes: make([]uint32, 0, len(batch))}
	text := make([]byte, 0, 32*n)
	for _, q := range batch {
		for i := range q.demands {
			d := &q.demands[i]
			start := len(text)
			text = appendKey(text, d.Key)
			question.Keys = append(question.Keys, text[start:len(text):len(text)])
			question.Limits = append(question.Limits, d.Limit)
			question.Periods = append(question.Periods, int64(d.Period))
			question.Counts = append(question.Counts, max(1, q.count))
			if q.mode == modeTakeBack {
				question.Instants = append(question.Instants, q.instants[i])
			} else {
				question.Instants = append(question.Instants, 0)
			}
		}
		question.Sizes = append(question.Sizes, uint32(len(q.demands)))
		question.Modes = append(question.Modes, q.mode)
	}
	began := c.table.Instant()
	got, err := c.net.Ask(c.ctx, silence, m.id, askName, question)
	answer, ok := got.(*pb.RateAnswer)
	ok = ok && err == nil && fits(answer, question)
	if !ok && c.slept(began, silence) {
		for _, q := range batch {
			q.verdict = again
			c.end(q, true)
		}
		return
	}
	m.heard(ok, c.table.Instant())
	if !ok {
		for _, q := range append(batch, m.asks.take()...) { // the others wait no longer for one that is silent
			c.end(q, false)
		}
		return
	}
	n = 0
	for i, q := range batch {
		q.verdict = verdict(answer.Verdicts[i])
		if q.verdict > refused {
			q.verdict = again
		}
		for k := range q.demands {
			if q.mode != modeLook && q.mode != modeTakeBack {
				q.instants = append(q.instants, answer.Instants[n])
			}
			q.stands[k] = window.Standing{Used: answer.Used[n], Reset: answer.Reset_[n], Retry: answer.Retry[n]}
			if (q.mode == modeCount || q.mode == modeStandIn) && q.verdict == admitted && !c.noteStandIn(&q.demands[k], answer.Numbers[n]) {
				q.verdict = again
			}
			if q.mode == modeLease {
				q.count = 0
				if len(answer.Counts) > n && q.verdict == admitted {
					q.count = answer.Counts[n]
				}
			}
			n++
		}
		c.end(q, true)
	}
}

// countOf is how many a key of a question is for.
func countOf(q *pb.RateAsk, i int) int64 {
	if len(q.Counts) == 0 {
		return 1
	}
	return max(1, min(q.Counts[i], maxLease))
}

// fits tells whether an answer has the shape that its question asks for.
func fits(a *pb.RateAnswer, q *pb.RateAsk) bool {
	n := len(q.Keys)
	return a != nil && len(a.Verdicts) == len(q.Sizes) && len(a.Used) == n && len(a.Reset_) == n && len(a.Retry) == n && len(a.Instants) == n && len(a.Numbers) == n
}

// receiveAsk decides for other nodes.
func (c *Counter) receiveAsk(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RateAsk)
	n := 0
	if ok {
		n, ok = len(q.Keys), askFits(q)
	}
	if !ok {
		answer(&pb.RateAnswer{})
		return
	}
	b := &pb.RateAnswer{Verdicts: make([]uint32, len(q.Sizes)), Used: make([]int64, n), Reset_: make([]int64, n), Retry: make([]int64, n),
		Instants: make([]int64, n), Numbers: make([]uint64, n), Counts: make([]int64, n)}
	if c.place.Load().alone { // it knows more members than this node does
		answer(b)
		return
	}
	gates := make([]gate, len(q.Sizes))
	demands := make([]firewall.Demand, 0, n)
	stands := make([]window.Standing, n)
	var left atomic.Int32
	left.Store(1)
	finish := func() {
		if left.Add(-1) != 0 {
			return
		}
		for i := range gates {
			if gates[i].undone() {
				b.Verdicts[i] = uint32(again)
			}
		}
		answer(b)
	}
	at := 0
	for i, size := range q.Sizes {
		base, g := at, &gates[i]
		g.init(c, from, q.Modes[i] == modeStandIn)
		for range size {
			key, valid := parseKey(q.Keys[at])
			if !valid || q.Limits[at] < 1 || q.Periods[at] < 1 {
				answer(&pb.RateAnswer{})
				return
			}
			demands = append(demands, firewall.Demand{Key: key, Limit: q.Limits[at], Period: time.Duration(q.Periods[at])})
			at++
		}
		g.demands = demands[base:at]
		switch q.Modes[i] {
		case modeLook:
			b.Verdicts[i] = uint32(refused)
			c.table.Look(c.ctx, g.demands, stands[base:at])
		case modeTakeBack:
			b.Verdicts[i] = uint32(refused)
			for k := range g.demands {
				c.forget(&g.demands[k], q.Instants[base+k], countOf(q, base+k))
			}
		case modeLease:
			if size != 1 {
				continue
			}
			left.Add(1)
			g.then, g.instants, g.numbers, g.asker = finish, b.Instants[base:at:at], b.Numbers[base:at:at], "" // it has the stand-in told by us
			b.Counts[base] = c.give(g, countOf(q, base), &stands[base])
			if b.Counts[base] > 0 {
				b.Verdicts[i] = uint32(admitted)
			}
			g.finish()
		case modeCount, modeStandIn:
			left.Add(1)
			g.then, g.instants, g.numbers = finish, b.Instants[base:at:at], b.Numbers[base:at:at]
			b.Verdicts[i] = uint32(g.decide(stands[base:at]))
			g.finish()
		}
	}
	for i, s := range stands {
		b.Used[i], b.Reset_[i], b.Retry[i] = s.Used, s.Reset, s.Retry
	}
	finish()
}
