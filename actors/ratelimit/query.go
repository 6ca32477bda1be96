package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// Names of the receivers. They are on the wire and do not change.
const (
	queryName  = "rates.ask"
	updateName = "rates.copy"
	pullName   = "rates.pull"
	topName    = "rates.top"
)

// The modes of a query. The numbers are on the wire.
const (
	modeCount     = 0
	modeLook      = 1
	modeAsReplica = 2 // the owner is unreachable: the replica decides
	modeTakeBack  = 3
	modeReserve   = 4 // see reservation.go
)

// query is a request to the member that decides about it.
type query struct {
	target
	mode      uint32
	demands   []ratelimit.Demand
	ids       []uint64 // the names of their admissions
	again     bool     // this may be a retry
	standings []ratelimit.Standing
	// count is the number requested and then granted (modeReserve), or the number taken back; 0 means one.
	count   int64
	verdict verdict
	done    chan bool // receives one value: whether there is an answer
	noReply bool      // the sender does not wait for done
}

func newQuery() any { return &query{done: make(chan bool, 1)} }

// query sends a request to the member that decides about it. The caller waits for done and returns the query to the
// pool.
func (dr *decider) query(t target, mode uint32, count int64, ids []uint64, demands ...ratelimit.Demand) *query {
	q := dr.prepare(t, mode, count, ids, demands)
	dr.peers.member(t.member).queries.put(q)
	return q
}

func (dr *decider) prepare(t target, mode uint32, count int64, ids []uint64, demands []ratelimit.Demand) *query {
	q := dr.queries.Get().(*query)
	q.target, q.mode, q.verdict, q.noReply, q.count = t, mode, unreachable, false, count
	q.again = false
	q.demands, q.ids = append(q.demands[:0], demands...), append(q.ids[:0], ids...)
	q.standings = append(q.standings[:0], make([]ratelimit.Standing, len(demands))...)
	return q
}

// takeBack makes a member remove at most count admissions of each demand, by their names.
func (dr *decider) takeBack(from string, count int64, ids []uint64, demands ...ratelimit.Demand) {
	if from == dr.self {
		for i := range demands {
			dr.forget(&demands[i], ids[i], count)
		}
		return
	}
	m := dr.peers.member(from)
	m.withWitnessed(func(w *shard.Witnessed) { w.Forget(ids, count) })
	q := dr.prepare(target{member: from}, modeTakeBack, count, ids, demands)
	q.noReply = true
	m.queries.put(q)
}

// end passes the query back to its sender, or to the pool.
func (q *query) end(answered bool, pool *sync.Pool) {
	if !q.noReply {
		q.done <- answered
		return
	}
	pool.Put(q)
}

// sendQueries sends one batch to a member and passes its answers to the callers. The member is unreachable if it does
// not even answer a query that waits for nothing, while this node itself did not stall.
func (dr *decider) sendQueries(to *member, batch []*query) {
	dr.batches.Add(1)
	dr.asked.Add(int64(len(batch)))
	question := encodeQueries(batch)
	began := dr.table.Instant()
	got, err := dr.net.Ask(dr.ctx, to.asking.patience(), to.id, queryName, question)
	if answer, ok := got.(*pb.RateAnswer); err == nil && ok && answerFits(answer, question) {
		now := dr.table.Instant()
		to.asking.observe(time.Duration(now-began), now)
		dr.peers.recordAnswer(to)
		at := 0
		for i, q := range batch {
			dr.readAnswer(q, answer, i, at, began)
			at += len(q.demands)
			q.end(true, &dr.queries)
		}
		return
	}
	late := errors.Is(err, context.DeadlineExceeded)
	if err == nil || late && dr.peers.answers(to) || late && dr.peers.still.since(began, dr.table.Instant()) {
		now := dr.table.Instant()
		to.asking.observe(time.Duration(now-began), now)
		for _, q := range batch {
			q.verdict = retry
			q.end(true, &dr.queries)
		}
		return
	}
	dr.peers.recordSilence(to, began)
	for _, q := range append(batch, to.queries.take()...) { // the queries behind do not wait for it either
		if q.noReply && q.verdict != retry { // it is sent once more: the member may come back
			q.verdict = retry
			to.queries.put(q)
			continue
		}
		q.end(false, &dr.queries)
	}
}

// encodeQueries encodes a batch as a message.
func encodeQueries(batch []*query) *pb.RateAsk {
	n := 0
	for _, q := range batch {
		n += len(q.demands)
	}
	question := &pb.RateAsk{Counts: make([]int64, 0, n), Keys: make([][]byte, 0, n), Limits: make([]int64, 0, n),
		Periods: make([]int64, 0, n), Instants: make([]int64, 0, n), Ids: make([]uint64, 0, n),
		Sizes: make([]uint32, 0, len(batch)), Modes: make([]uint32, 0, len(batch))}
	text := make([]byte, 0, 32*n)
	for _, q := range batch {
		for i := range q.demands {
			d := &q.demands[i]
			start := len(text)
			text = shard.AppendKey(text, d.Key)
			question.Keys = append(question.Keys, text[start:len(text):len(text)])
			question.Limits = append(question.Limits, d.Limit)
			question.Periods = append(question.Periods, int64(d.Period))
			question.Counts = append(question.Counts, max(1, q.count))
			question.Instants = append(question.Instants, 0)
			if d.Shared {
				question.Shared = append(question.Shared, uint32(len(question.Ids)))
			}
			id := uint64(0)
			if i < len(q.ids) {
				id = q.ids[i]
			}
			question.Ids = append(question.Ids, id)
		}
		if q.again {
			question.Again = append(question.Again, uint32(len(question.Sizes)))
		}
		question.Sizes = append(question.Sizes, uint32(len(q.demands)))
		question.Modes = append(question.Modes, q.mode)
	}
	return question
}

// readAnswer decodes the answer to query i of a batch, whose demands begin at at.
func (dr *decider) readAnswer(q *query, answer *pb.RateAnswer, i, at int, sent int64) {
	if q.verdict = verdict(answer.Verdicts[i]); q.verdict > refused {
		q.verdict = retry
	}
	for k := range q.demands {
		n := at + k
		q.standings[k] = ratelimit.Standing{Used: answer.Used[n], Reset: answer.Reset_[n], Retry: answer.Retry[n]}
		if n < len(answer.Sharing) && answer.Sharing[n] <= uint32(ratelimit.Instead) {
			q.standings[k].Sharing = ratelimit.Sharing(answer.Sharing[n])
		}
		switch q.mode {
		case modeCount, modeAsReplica:
			if q.verdict == admitted && answer.Numbers[n] != 0 &&
				!dr.follower.applyOwn(&q.demands[k], q.ids[k], answer.Numbers[n], q.again, sent) {
				q.verdict = retry
			}
			if q.verdict == admitted && n < len(answer.Witnessed) && answer.Witnessed[n] != 0 &&
				!dr.peers.member(q.member).keepOwn(&q.demands[k], q.ids[k], answer.Witnessed[n], sent, dr.table.Instant()) {
				q.verdict = retry
			}
		case modeReserve:
			q.count = 0
			if len(answer.Counts) > n && q.verdict == admitted {
				q.count = answer.Counts[n]
			}
		}
	}
}

// answerFits reports whether the shape of an answer matches its query.
func answerFits(a *pb.RateAnswer, q *pb.RateAsk) bool {
	n := len(q.Keys)
	return a != nil && len(a.Verdicts) == len(q.Sizes) && len(a.Used) == n && len(a.Reset_) == n &&
		len(a.Retry) == n && len(a.Instants) == n && len(a.Numbers) == n
}
