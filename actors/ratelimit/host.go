package ratelimit

import (
	"context"
	"time"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
)

// KeyKind is the kind of the keys of rate limits, which are virtual actors with inline turns. An id is that of
// ratelimit.Key.ID.
const KeyKind = "rate"

// maxCost is the largest cost of a request, in admissions.
const maxCost = 1000

// host runs the turns of the keys on their owner. Requests of the firewall do not come this way: Limiter.Allow finds
// the same windows without a message.
type host struct {
	table   *ratelimit.Table
	limiter *Limiter // nil: a node without a cluster
	self    func() string
}

// Hosted returns the kind of the keys of a cluster's limiter.
func (l *Limiter) Hosted() cluster.Kind {
	return cluster.Kind{Name: KeyKind, Shards: Kind, Host: &host{l.table, l, l.net.Address}}
}

// HostedBy returns the kind of the keys of a node without a cluster.
func HostedBy(table *ratelimit.Table, self func() string) cluster.Kind {
	return cluster.Kind{Name: KeyKind, Shards: Kind, Host: &host{table, nil, self}}
}

func (h *host) Shard(id string) (n int, ok bool) {
	key, ok := ratelimit.ParseID(id)
	return key.Partition(), ok
}

func (h *host) Active() int { return h.table.Keys() }

// Figures returns the roles of this node for the partitions, "owned", "replica" and "unsettled", and the admissions
// that it decided "as_replica" of a silent owner.
func (h *host) Figures() map[string]int64 {
	l := h.limiter
	if l == nil {
		return map[string]int64{"owned": ratelimit.Partitions}
	}
	f, pl := map[string]int64{"as_replica": l.asReplica.Load()}, l.place.Load()
	for p := range ratelimit.Partitions {
		role := "unsettled"
		l.withShard(p, func(s *shard.Shard) {
			switch {
			case s.Owns() || pl.alone:
				role = "owned"
			case s.Follows():
				role = "replica"
			case s.KnowsNothing() && pl.owner[p] != l.self && pl.replica[p] != l.self:
				role = ""
			}
		})
		if role != "" {
			f[role]++
		}
	}
	return f
}

func (h *host) Turn(t *cluster.Turn) {
	key, _ := ratelimit.ParseID(t.ID)
	l := h.limiter
	if l != nil && t.From != "" && l.place.Load().alone { // the sender has a view with more members than this node
		t.Elsewhere()
		return
	}
	switch m := t.Message.(type) {
	case *pb.RateDecide:
		h.decide(t, key, m)
	case *pb.RatePeek:
		h.whenOwning(t, key.Partition(), func(windows *ratelimit.Partition) {
			w := windows.Get(key)
			t.Reply(h.turned(key, peek(w, m, h.table.Instant()), m.Limit, periodOf(w, m), false))
		})
	case *pb.RateReset:
		h.reset(t, key)
	default:
		t.Reply(&pb.RateTurned{})
	}
}

// decide counts a request, and answers when the replica has confirmed it.
func (h *host) decide(t *cluster.Turn, key ratelimit.Key, m *pb.RateDecide) {
	demands := []ratelimit.Demand{{Key: key, Limit: m.Limit, Period: time.Duration(m.PeriodMs) * time.Millisecond,
		Cost: max(1, m.Cost), Shared: m.Shared}}
	demand, standings := &demands[0], make([]ratelimit.Standing, 1)
	if m.Limit < 1 || m.PeriodMs < 1 || demand.Period/time.Millisecond != time.Duration(m.PeriodMs) || m.Cost > maxCost {
		t.Reply(&pb.RateTurned{})
		return
	}
	reply := func(v verdict) {
		t.Reply(h.turned(key, standings[0], m.Limit, demand.Period, v == admitted))
	}
	l := h.limiter
	if l == nil {
		if ok, _ := h.table.Allow(context.Background(), demands, standings); ok {
			reply(admitted)
		} else {
			reply(refused)
		}
		return
	}
	v := retry
	d := &decision{Decide: shard.Decide{Demands: demands, Standings: standings, IDs: []uint64{m.Name},
		Numbers: make([]uint64, 1)}}
	d.init(l.decider, "", false)
	d.Again = true // a named request may have come before
	if m.Name == 0 {
		d.IDs[0] = max(1, l.names.Add(1))
	}
	d.then = func() {
		if v != retry && !d.failed() {
			reply(v)
			return
		}
		if m.Name == 0 && v == admitted { // the caller cannot repeat it under its name
			l.forget(demand, d.IDs[0], demand.Cost)
		}
		t.Elsewhere()
	}
	v = d.decide()
	d.finish()
}

// whenOwning calls do with a partition locked if this node may decide about it. Otherwise the caller asks again.
func (h *host) whenOwning(t *cluster.Turn, p int, do func(windows *ratelimit.Partition)) {
	l, may := h.limiter, true
	h.table.WithPartition(p, func(windows *ratelimit.Partition) {
		if l != nil {
			may = l.partitions[p].Owns() && l.place.Load().owner[p] == l.self && l.net.Belongs()
		}
		if may {
			do(windows)
		}
	})
	if !may {
		l.takeOverSoon(p)
		t.Elsewhere()
	}
}

// resetTries is how often the state of a partition is sent to a replica that lacks an earlier one.
const resetTries = 10

// reset removes the admissions of a key. Those that lie ahead are reserved by a node that may still use them; they
// stay. The replica gets the state of the partition, as it does from every version, and the caller is answered when it
// has confirmed it.
func (h *host) reset(t *cluster.Turn, key ratelimit.Key) {
	var used ratelimit.Standing
	var period time.Duration
	p := key.Partition()
	h.whenOwning(t, p, func(windows *ratelimit.Partition) {
		w, now := windows.Get(key), h.table.Instant()
		if used, period = peek(w, &pb.RatePeek{}, now), periodOf(w, &pb.RatePeek{}); used.Used == 0 {
			t.Reply(h.turned(key, used, 0, period, true))
			return
		}
		l := h.limiter
		if l == nil {
			w.ForgetUntil(now)
			t.Reply(h.turned(key, used, 0, period, true))
			return
		}
		l.stepLocked(p, &shard.Clear{Key: key})
		h.confirmReset(t, p, h.turned(key, used, 0, period, true), resetTries)
	})
}

// confirmReset sends the replica the state of a partition and answers when it has confirmed it. The caller holds the
// partition's lock.
func (h *host) confirmReset(t *cluster.Turn, p int, turned *pb.RateTurned, tries int) {
	l := h.limiter
	d := &decision{}
	d.init(l.decider, "", false)
	d.then = func() {
		if !d.failed() {
			t.Reply(turned)
			return
		}
		if tries == 0 || !l.inBackground(func() {
			h.whenOwning(t, p, func(*ratelimit.Partition) { h.confirmReset(t, p, turned, tries-1) })
		}) {
			t.Elsewhere()
		}
	}
	l.stepLocked(p, &shard.Resend{Place: l.placeOf(d.placement, p, ""), Always: true, Waits: d})
	d.finish()
}

// peek returns the state of a window. Without the quota of its rule that is by its last admission.
func peek(w *ratelimit.Window, m *pb.RatePeek, now int64) (s ratelimit.Standing) {
	if w == nil {
		return s
	}
	q := ratelimit.Quota{Limit: m.Limit, Period: int64(periodOf(w, m))}
	if q.Limit < 1 {
		if q.Limit = ratelimit.MaxExact; w.Coarse() {
			q.Limit = 1e9 // the largest of a rule
		}
	}
	if q.Period < 1 {
		return s
	}
	s = w.Look(now, q)
	if m.Limit < 1 {
		s.Retry = 0
	}
	return s
}

func periodOf(w *ratelimit.Window, m *pb.RatePeek) time.Duration {
	if m.PeriodMs > 0 || w == nil {
		return time.Duration(m.PeriodMs) * time.Millisecond
	}
	return time.Duration(w.Period())
}

// turned describes a key for the answer. Times are rounded up.
func (h *host) turned(key ratelimit.Key, s ratelimit.Standing, limit int64, period time.Duration,
	admitted bool) *pb.RateTurned {
	ms := func(ns int64) int64 { return (ns + 1e6 - 1) / 1e6 }
	r := &pb.RateTurned{Admitted: admitted, Used: s.Used, Limit: limit, ResetMs: ms(s.Reset), RetryMs: ms(s.Retry),
		PeriodMs: period.Milliseconds(), Sharing: uint32(s.Sharing), Owner: h.self(), Phase: "owning"}
	if l := h.limiter; l != nil {
		r.Replica = l.place.Load().replica[key.Partition()]
	}
	return r
}
