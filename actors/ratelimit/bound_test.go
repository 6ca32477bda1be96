package ratelimit

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/guard/ratelimit"
)

// boundedNodes is a world whose nodes keep at most that many keys of a rule.
func boundedNodes(t *testing.T, most int) (*world, map[string]*ratelimit.Bounded) {
	w := newWorld(t)
	w.start(three...)
	all := map[string]*ratelimit.Bounded{}
	for _, id := range three {
		w.nodes[id].Bound(most)
		one := func(string) string { return "one" }
		all[id] = ratelimit.NewBounded(w.nodes[id].Limiter, one, time.Now, slog.New(slog.DiscardHandler))
	}
	w.see(three, three...)
	time.Sleep(100 * time.Millisecond)
	return w, all
}

func address(a uint32) ratelimit.Key {
	return ratelimit.Key{Rule: "r", IP: netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})}
}

// Other keys fill the bound on every node. The limit is never exceeded, whichever node a client calls.
func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, limit = 40, 3
		w, nodes := boundedNodes(t, most)
		defer w.close()
		r := rand.New(rand.NewPCG(1, 2))
		admitted := map[ratelimit.Key][]time.Time{}
		refused := 0
		for n := range 6000 {
			k := address(10<<24 | uint32(r.IntN(20))<<16 | uint32(r.IntN(4))<<8 | uint32(r.IntN(4)))
			stands := make([]ratelimit.Standing, 1)
			ok, err := nodes[three[r.IntN(3)]].Allow(t.Context(),
				[]ratelimit.Demand{{Key: k, Limit: limit, Period: time.Minute}}, stands)
			if err != nil || !ok && stands[0].Retry <= 0 {
				t.Fatalf("%+v, %v", stands[0], err)
			}
			within := 0
			for _, at := range admitted[k] {
				if time.Since(at) < time.Minute-20*time.Millisecond { // it was counted a moment before
					within++
				}
			}
			if ok && within >= limit {
				t.Fatalf("request %d of %v: admitted beside %d", n, k, within)
			}
			if ok {
				admitted[k] = append(admitted[k], time.Now())
			} else {
				refused++
			}
			time.Sleep(time.Duration(r.IntN(int(50 * time.Millisecond))))
			if n%2000 == 1999 { // a pause, in which keys become free
				time.Sleep(50 * time.Second)
			}
			if n%200 != 0 {
				continue
			}
			for id := range nodes {
				own, local := w.nodes[id], 0
				for i := range own.localLimiters {
					local += own.localLimiters[i].keys.Len()
				}
				// Its own keys and, as a replica, as many of others; two widths share a quarter each.
				if kept := own.Keys(); kept > 2*(most+most/2+1) || local > most+most/2+1 {
					t.Fatalf("%s keeps %d keys, %d of its own requests", id, kept, local)
				}
				own.Sweep()
			}
		}
		if len(admitted) < 2*most || refused == 0 {
			t.Errorf("%d clients, %d refused", len(admitted), refused)
		}
	})
}

// The replica of a lost owner has the information which keys are counted under a wider one.
func TestReplicaKnowsSharedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes := boundedNodes(t, 1)
		defer w.close()
		a := w.nodes["a"]
		var own []ratelimit.Key // keys owned by a
		for n := uint32(0); len(own) < 2; n += 1 << 16 {
			if k := address(n); a.place.Load().owner[k.Partition()] == "a" {
				own = append(own, k)
			}
		}
		ask := func(id string, k ratelimit.Key) bool {
			ok, err := nodes[id].Allow(context.Background(),
				[]ratelimit.Demand{{Key: k, Limit: 2, Period: time.Minute}}, make([]ratelimit.Standing, 1))
			return ok && err == nil
		}
		ask("b", own[0])
		ask("b", own[1]) // it shares from now on
		time.Sleep(time.Minute)
		for _, id := range three {
			w.nodes[id].Sweep()
		}
		if !ask("b", own[1]) { // it has its own key again, in addition to the wider one
			t.Error("refused")
		}
		for _, id := range three {
			if id == "a" {
				continue
			}
			n := w.nodes[id]
			n.table.WithPartition(own[1].Partition(), func(p *ratelimit.Partition) {
				replica := n.place.Load().replica[own[1].Partition()] == id
				if win := p.Get(own[1]); replica && (win == nil || !win.SharedAt(n.table.Instant())) {
					t.Errorf("%s does not know that the key is shared", id)
				}
			})
		}
	})
}

// When no node answers, a node also keeps no more keys than the bound.
func TestKeysOfSharesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, nodes := boundedNodes(t, 10)
		defer w.close()
		w.freeze("b")
		w.freeze("c")
		time.Sleep(3 * time.Second)
		admitted := 0
		for n := range uint32(400) {
			ok, err := nodes["a"].Allow(context.Background(), []ratelimit.Demand{{Key: address(n << 20), Limit: 30,
				Period: time.Hour}}, make([]ratelimit.Standing, 1))
			if ok && err == nil {
				admitted++
			}
		}
		local := 0
		for i := range w.nodes["a"].localLimiters {
			local += w.nodes["a"].localLimiters[i].keys.Len()
		}
		if local > 10+2*3+1 || admitted < 10 || w.nodes["a"].Stats().Shared == 0 {
			t.Errorf("%d keys, %d admitted", local, admitted)
		}
		w.thaw("b", true)
		w.thaw("c", true)
	})
}
