package ratelimit

import (
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/ratelimit"
)

// Names of the receivers.
const (
	queryName  = "rates.ask"
	updateName = "rates.copy"
	pullName   = "rates.pull"
)

// What a request is asked about for. Numbers on the wire.
const (
	modeCount     = 0
	modeLook      = 1
	modeAsReplica = 2 // its owner is silent
	modeTakeBack  = 3
	modeReserve   = 4 // many beforehand; see lease.go
)

// ask is a request on its way to an owner.
type query struct {
	target
	mode     uint32
	demands  []ratelimit.Demand
	stands   []ratelimit.Standing
	instants []int64 // what each was counted as
	count    int64   // of a lease: how many are wanted, then given; of what is taken back: how many; 0: one
	verdict  verdict
	done     chan bool // gets one: whether there is an answer
	noReply  bool      // waits for it
}

func newQuery() any { return &query{done: make(chan bool, 1)} }

// ask sends a request to the member that decides about it. Whoever asks waits
// for done, and gives the ask back.
func (l *Limiter) query(t target, mode uint32, count int64, demands ...ratelimit.Demand) *query {
	q := l.prepare(t, mode, count, demands)
	l.member(t.member).queries.put(q)
	return q
}

func (l *Limiter) prepare(t target, mode uint32, count int64, demands []ratelimit.Demand) *query {
	q := l.queries.Get().(*query)
	q.target, q.mode, q.verdict, q.noReply, q.count = t, mode, unreachable, false, count
	q.demands, q.instants = append(q.demands[:0], demands...), q.instants[:0]
	q.stands = append(q.stands[:0], make([]ratelimit.Standing, len(demands))...)
	return q
}

// takeBack has an owner forget what it has counted. It keeps the ask.
func (l *Limiter) takeBack(q *query) {
	q.mode, q.noReply = modeTakeBack, true
	l.member(q.member).queries.put(q)
}

func (l *Limiter) end(q *query, answered bool) {
	if !q.noReply {
		q.done <- answered
		return
	}
	l.queries.Put(q)
}

// sendAsks is the way's: one batch to an owner.
func (l *Limiter) sendQueries(to *member, batch []*query) {
	l.batches.Add(1)
	l.asked.Add(int64(len(batch)))
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
	began := l.table.Instant()
	got, err := l.net.Ask(l.ctx, answerTimeout, to.id, queryName, question)
	answer, ok := got.(*pb.RateAnswer)
	ok = ok && err == nil && fits(answer, question)
	if !ok && l.wasPaused(began, answerTimeout) {
		for _, q := range batch {
			q.verdict = retry
			l.end(q, true)
		}
		return
	}
	to.heard(ok, l.table.Instant())
	if !ok {
		for _, q := range append(batch, to.queries.take()...) { // the others wait no longer for one that is silent
			l.end(q, false)
		}
		return
	}
	n = 0
	for i, q := range batch {
		q.verdict = verdict(answer.Verdicts[i])
		if q.verdict > refused {
			q.verdict = retry
		}
		for k := range q.demands {
			if q.mode != modeLook && q.mode != modeTakeBack {
				q.instants = append(q.instants, answer.Instants[n])
			}
			q.stands[k] = ratelimit.Standing{Used: answer.Used[n], Reset: answer.Reset_[n], Retry: answer.Retry[n]}
			if (q.mode == modeCount || q.mode == modeAsReplica) && q.verdict == admitted && !l.applyOwn(&q.demands[k], answer.Numbers[n]) {
				q.verdict = retry
			}
			if q.mode == modeReserve {
				q.count = 0
				if len(answer.Counts) > n && q.verdict == admitted {
					q.count = answer.Counts[n]
				}
			}
			n++
		}
		l.end(q, true)
	}
}

// countOf is how many a key of a question is for.
func countOf(q *pb.RateAsk, i int) int64 {
	if len(q.Counts) == 0 {
		return 1
	}
	return max(1, min(q.Counts[i], maxReservation))
}

// fits tells whether an answer has the shape that its question asks for.
func fits(a *pb.RateAnswer, q *pb.RateAsk) bool {
	n := len(q.Keys)
	return a != nil && len(a.Verdicts) == len(q.Sizes) && len(a.Used) == n && len(a.Reset_) == n && len(a.Retry) == n && len(a.Instants) == n && len(a.Numbers) == n
}

// receiveAsk decides for other nodes.
func (l *Limiter) receiveQueries(from string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RateAsk)
	n := 0
	if ok {
		n, ok = len(q.Keys), queryFits(q)
	}
	if !ok {
		answer(&pb.RateAnswer{})
		return
	}
	b := &pb.RateAnswer{Verdicts: make([]uint32, len(q.Sizes)), Used: make([]int64, n), Reset_: make([]int64, n), Retry: make([]int64, n),
		Instants: make([]int64, n), Numbers: make([]uint64, n), Counts: make([]int64, n)}
	if l.place.Load().alone { // it knows more members than this node does
		answer(b)
		return
	}
	decisions := make([]decision, len(q.Sizes))
	demands := make([]ratelimit.Demand, 0, n)
	stands := make([]ratelimit.Standing, n)
	var left atomic.Int32
	left.Store(1)
	finish := func() {
		if left.Add(-1) != 0 {
			return
		}
		for i := range decisions {
			if decisions[i].failed() {
				b.Verdicts[i] = uint32(retry)
			}
		}
		answer(b)
	}
	at := 0
	for i, size := range q.Sizes {
		base, d := at, &decisions[i]
		d.init(l, from, q.Modes[i] == modeAsReplica)
		for range size {
			key, valid := parseKey(q.Keys[at])
			if !valid || q.Limits[at] < 1 || q.Periods[at] < 1 {
				answer(&pb.RateAnswer{})
				return
			}
			demands = append(demands, ratelimit.Demand{Key: key, Limit: q.Limits[at], Period: time.Duration(q.Periods[at])})
			at++
		}
		d.demands = demands[base:at]
		switch q.Modes[i] {
		case modeLook:
			b.Verdicts[i] = uint32(refused)
			l.table.Look(l.ctx, d.demands, stands[base:at])
		case modeTakeBack:
			b.Verdicts[i] = uint32(refused)
			for k := range d.demands {
				l.forget(&d.demands[k], q.Instants[base+k], countOf(q, base+k))
			}
		case modeReserve:
			if size != 1 {
				continue
			}
			left.Add(1)
			d.then, d.instants, d.numbers, d.requester = finish, b.Instants[base:at:at], b.Numbers[base:at:at], "" // it has the stand-in told by us
			b.Counts[base] = l.grant(d, countOf(q, base), &stands[base])
			if b.Counts[base] > 0 {
				b.Verdicts[i] = uint32(admitted)
			}
			d.finish()
		case modeCount, modeAsReplica:
			left.Add(1)
			d.then, d.instants, d.numbers = finish, b.Instants[base:at:at], b.Numbers[base:at:at]
			b.Verdicts[i] = uint32(d.decide(stands[base:at]))
			d.finish()
		}
	}
	for i, s := range stands {
		b.Used[i], b.Reset_[i], b.Retry[i] = s.Used, s.Reset, s.Retry
	}
	finish()
}
