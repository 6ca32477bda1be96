package ratelimit

import (
	"context"

	protoactor "github.com/asynkron/protoactor-go/cluster"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
)

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
