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
		ratelimit.Counter
		of    uint32
		state *pb.RateTurned
	}
	var all []counter
	most := max(1, int(q.Most))
	rules := map[string]uint32{}
	for i, label := range q.Labels {
		rules[label] = uint32(i)
	}
	cut := func() {
		sorting.Func(all, func(a, b counter) int { return fuller(&a.Counter, &b.Counter) })
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
					all = append(all, counter{counterOf(k.Rule, k.String(), "", turned), of, turned})
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
		back.Of, back.Entities = append(back.Of, c.of), append(back.Entities, c.Entity)
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
	sorting.Func(all, func(a, b ratelimit.Counter) int { return fuller(&a, &b) })
	slices.Sort(silent)
	return all[:min(len(all), q.Most)], silent
}

func (c *Counters) Used(ctx context.Context, k ratelimit.Key) (int64, error) {
	return c.turn(ctx, k, &pb.RatePeek{})
}

func (c *Counters) Reset(ctx context.Context, k ratelimit.Key) (usedBefore int64, err error) {
	return c.turn(ctx, k, &pb.RateReset{})
}

// fuller orders counters by the used share of their limit, the fullest first.
func fuller(a, b *ratelimit.Counter) int {
	return cmp.Or(cmp.Compare(b.Used*a.Limit, a.Used*b.Limit), cmp.Compare(a.Label, b.Label),
		cmp.Compare(a.Entity, b.Entity))
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

// Costed is the Limiter of a cluster that knows Demand.Cost. The batches between nodes do not, so such a request is a
// turn of each of its keys (host.go).
type Costed struct {
	*Limiter
	Node *cluster.Node
}

var _ ratelimit.Limiter = Costed{}

// Allow is Limiter.Allow. A request that costs more waits for the owners alone: while an owner is silent, it fails.
func (c Costed) Allow(ctx context.Context, demands []ratelimit.Demand, standings []ratelimit.Standing) (bool, error) {
	costs := false
	for i := range demands {
		costs = costs || demands[i].Cost > 1
	}
	if !costs {
		return c.Limiter.Allow(ctx, demands, standings)
	}
	clear(standings)
	names := make([]uint64, 0, len(demands))
	for i := range demands {
		d := &demands[i]
		names = append(names, max(1, c.names.Add(1)))
		got, err := c.Node.Cluster().Request(d.Key.ID(), KeyKind, &pb.RateDecide{Limit: d.Limit,
			PeriodMs: d.Period.Milliseconds(), Cost: d.Cost, Name: names[i], Shared: d.Shared}, cluster.Within(ctx),
			protoactor.WithTimeout(askTime))
		turned, ok := got.(*pb.RateTurned)
		switch ok = ok && err == nil && turned.Owner != ""; {
		case !ok: // it may have been counted
			c.takeBackCost(demands, names)
			return false, errUndecided
		case !turned.Admitted:
			standings[i] = standingOf(turned)
			c.takeBackCost(demands, names[:i])
			return false, c.Look(ctx, demands[i+1:], standings[i+1:])
		}
		standings[i] = standingOf(turned)
	}
	return true, nil
}

// takeBackCost takes a request back under the keys that have a name, from their owners and replicas.
func (c Costed) takeBackCost(demands []ratelimit.Demand, names []uint64) {
	pl := c.place.Load()
	for i, name := range names {
		p := demands[i].Key.Partition()
		for _, id := range [...]string{pl.owner[p], pl.replica[p]} {
			if id != "" {
				c.takeBack(id, demands[i].Cost, []uint64{name}, demands[i])
			}
		}
	}
}

func standingOf(m *pb.RateTurned) ratelimit.Standing {
	return ratelimit.Standing{Used: m.Used, Reset: m.ResetMs * 1e6, Retry: m.RetryMs * 1e6,
		Sharing: ratelimit.Sharing(min(m.Sharing, uint32(ratelimit.Instead)))}
}
