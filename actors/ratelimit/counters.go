package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/sorting"
)

// Counters reads and resets the counters of all nodes.
type Counters struct {
	Node *cluster.Node
	Kind cluster.Kind // of Hosted or HostedBy
}

var _ ratelimit.Counters = (*Counters)(nil)

const (
	// topTimeout bounds the wait for the counters of a member.
	topTimeout = 500 * time.Millisecond
	// turnTimeout bounds a turn. The owner may wait for the replica.
	turnTimeout = 2 * time.Second
)

var errSilent = fault.New(fault.Unavailable, "the node of the counter does not answer at the moment").After(time.Second)

// receiveTop answers a member that asks for the counters of this node.
func (l *Limiter) receiveTop(_ string, question proto.Message, answer func(proto.Message)) {
	q, ok := question.(*pb.RateTop)
	if !ok || len(q.Limits) != len(q.Labels) || len(q.PeriodsMs) != len(q.Labels) {
		answer(&pb.RateCounters{})
		return
	}
	h := &host{l.table, l, l.net.Address}
	l.inBackground(func() { answer(h.top(q)) }) // it takes some milliseconds, and this goroutine must keep reading
}

// top returns the fullest counters that this node owns. One partition is locked at a time.
func (h *host) top(q *pb.RateTop) *pb.RateCounters {
	type counter struct {
		of    uint32
		key   ratelimit.Key
		state *pb.RateTurned
	}
	var all []counter
	most := max(1, int(q.Most))
	rules := map[string]uint32{}
	for i, label := range q.Labels {
		rules[label] = uint32(i)
	}
	fuller := func(a, b counter) int {
		return cmp.Or(cmp.Compare(b.state.Used*a.state.Limit, a.state.Used*b.state.Limit),
			cmp.Compare(a.of, b.of), cmp.Compare(a.key.String(), b.key.String()))
	}
	cut := func() {
		sorting.Func(all, fuller)
		all = all[:min(len(all), most)]
	}
	for p := range ratelimit.Partitions {
		h.table.WithPartition(p, func(windows *ratelimit.Partition) {
			if l := h.limiter; l != nil && !l.partitions[p].Decides() {
				return
			}
			now := h.table.Instant()
			for k := range windows.Keys() {
				of, ok := rules[k.Rule]
				if !ok || q.Entity != "" && k != ratelimit.KeyOf(k.Rule, q.Entity) {
					continue
				}
				m := &pb.RatePeek{Limit: q.Limits[of], PeriodMs: q.PeriodsMs[of]}
				s := peek(windows.Get(k), m, now)
				if s.Used > 0 && m.Limit > 0 && s.Used*1000 >= m.Limit*int64(q.LeastPermille) {
					turned := h.turned(k, s, m.Limit, time.Duration(m.PeriodMs)*time.Millisecond, false)
					if l := h.limiter; l != nil {
						turned.Phase = l.partitions[p].Phase()
					}
					all = append(all, counter{of, k, turned})
				}
			}
		})
		if len(all) > 4*most+1000 {
			cut()
		}
	}
	cut()
	back := &pb.RateCounters{}
	for _, c := range all {
		back.Of, back.Entities = append(back.Of, c.of), append(back.Entities, c.key.String())
		back.States = append(back.States, c.state)
	}
	return back
}

func (c *Counters) Fullest(ctx context.Context, q ratelimit.CountersQuery) (all []ratelimit.Counter, silent []string) {
	question := &pb.RateTop{Entity: q.Entity, LeastPermille: uint32(q.Least * 1000), Most: uint32(q.Most)}
	for _, r := range q.Rules {
		question.Labels = append(question.Labels, r.Label)
		question.Limits = append(question.Limits, r.Limit)
		question.PeriodsMs = append(question.PeriodsMs, r.Period.Milliseconds())
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	add := func(node string, got *pb.RateCounters) {
		mu.Lock()
		defer mu.Unlock()
		for i, s := range got.States {
			if i >= len(got.Of) || i >= len(got.Entities) || int(got.Of[i]) >= len(q.Rules) {
				break
			}
			all = append(all, counterOf(q.Rules[got.Of[i]].Label, got.Entities[i], node, s))
		}
	}
	for _, m := range c.Node.Members() {
		if m.ID == c.Node.Address() {
			asked.Go(func() { add(m.ID, c.Kind.Host.(*host).top(question)) })
			continue
		}
		asked.Go(func() {
			answer, err := c.Node.Ask(ctx, topTimeout, m.ID, topName, question)
			if got, ok := answer.(*pb.RateCounters); ok && err == nil {
				add(m.ID, got)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			silent = append(silent, m.ID)
		})
	}
	asked.Wait()
	sorting.Func(all, func(a, b ratelimit.Counter) int {
		return cmp.Or(cmp.Compare(b.Used*a.Limit, a.Used*b.Limit), cmp.Compare(a.Label, b.Label),
			cmp.Compare(a.Entity, b.Entity))
	})
	slices.Sort(silent)
	return all[:min(len(all), q.Most)], silent
}

func (c *Counters) Used(ctx context.Context, k ratelimit.Key) (int64, error) {
	return c.turn(ctx, k, &pb.RatePeek{})
}

func (c *Counters) Reset(ctx context.Context, k ratelimit.Key) (usedBefore int64, err error) {
	return c.turn(ctx, k, &pb.RateReset{})
}

// turn sends a message to a key and returns the used admissions of the answer.
func (c *Counters) turn(ctx context.Context, k ratelimit.Key, m proto.Message) (used int64, err error) {
	got, err := c.Node.Cluster().Request(k.ID(), KeyKind, m, cluster.Within(ctx), protoactor.WithTimeout(turnTimeout))
	if turned, ok := got.(*pb.RateTurned); ok && err == nil {
		return turned.Used, nil
	}
	return 0, errSilent
}

func counterOf(label, entity, node string, s *pb.RateTurned) ratelimit.Counter {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return ratelimit.Counter{Label: label, Entity: entity, Used: s.Used, Limit: s.Limit, Period: ms(s.PeriodMs),
		Reset: ms(s.ResetMs), Retry: ms(s.RetryMs), Node: node, Replica: s.Replica, Phase: s.Phase}
}
