package ratelimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/actors/ratelimit"
	"castellan/cluster"
	domain "castellan/domain/guard/ratelimit"
	"castellan/internal/porttest"
)

// member is a real node of a cluster on loopback, with its counter.
type member struct {
	*ratelimit.Limiter
	node *cluster.Node
}

// join starts a member of the seeds' cluster.
func join(t testing.TB, seeds ...string) (m member, gossip string) {
	t.Helper()
	gossip = porttest.Free(t)
	n, err := cluster.New(cluster.Options{GossipAddr: gossip, ActorAddr: porttest.Free(t), Join: seeds,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	m = member{ratelimit.New(n, nil, slog.New(slog.DiscardHandler)), n}
	n.Register(m.Hosted())
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Stop(context.Background())
		m.Close()
	})
	return m, gossip
}

// settled waits until all members have joined each other.
func settled(t testing.TB, ms ...member) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all := true
		for _, m := range ms {
			all = all && len(m.node.Status().Members) == len(ms) && m.node.Belongs()
		}
		if all {
			break
		}
		if time.Now().After(end) {
			t.Fatal("they do not find each other")
		}
	}
}

// Over real connections a limit holds while one member joins and another leaves. Requests that time out on a slow
// machine are still counted, so some admissions may be missing.
func TestLimitOverRealConnections(t *testing.T) {
	const limit, keys = 100, 40
	a, seed := join(t)
	b, _ := join(t, seed)
	settled(t, a, b)
	var admitted, refused [keys]atomic.Int64
	var targets atomic.Pointer[[]member]
	targets.Store(&[]member{a, b})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for k := i; ctx.Err() == nil; k++ {
				to := (*targets.Load())[k%len(*targets.Load())]
				ok, err := to.Allow(ctx, []domain.Demand{{Key: domain.Key{Rule: "r", Name: fmt.Sprint(k % keys)},
					Limit: limit, Period: 10 * time.Minute}}, make([]domain.Standing, 1))
				if err != nil {
					t.Error(err)
				} else if ok {
					admitted[k%keys].Add(1)
				} else {
					refused[k%keys].Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	c, _ := join(t, seed)
	settled(t, a, b, c)
	targets.Store(&[]member{a, b, c})
	time.Sleep(200 * time.Millisecond)
	targets.Store(&[]member{a, c})
	time.Sleep(20 * time.Millisecond)
	b.node.Leave(ctx)
	b.node.Stop(ctx)
	b.Close()
	enough := func() bool {
		for k := range refused {
			if refused[k].Load() < 20 {
				return false
			}
		}
		return true
	}
	for !enough() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	stop()
	work.Wait()
	shared := a.Stats().Shared + b.Stats().Shared + c.Stats().Shared
	for k := range admitted {
		if n := admitted[k].Load(); n > limit+shared || n < limit*8/10 {
			t.Errorf("key %d: %d of %d, %d shared", k, n, limit, shared)
		}
	}
	t.Logf("%+v\n%+v\n%+v", a.Stats(), b.Stats(), c.Stats())
}

// BenchmarkRemote measures decisions of another node, with both nodes on this machine and many concurrent callers.
func BenchmarkRemote(b *testing.B) {
	for _, callers := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) { benchmark(b, callers, 2, false) })
	}
}

// BenchmarkOwned measures decisions of this node that its replica confirms.
func BenchmarkOwned(b *testing.B) {
	for _, callers := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) { benchmark(b, callers, 3, true) })
	}
}

func benchmark(b *testing.B, callers, nodes int, owned bool) {
	first, seed := join(b)
	all := []member{first}
	for range nodes - 1 {
		m, _ := join(b, seed)
		all = append(all, m)
	}
	settled(b, all...)
	time.Sleep(300 * time.Millisecond)
	var keys []domain.Key
	for i := 0; len(keys) < 500; i++ {
		k := domain.Key{Rule: "login-ip", Name: fmt.Sprint("user-", i)}
		if owner, _ := first.node.Place(ratelimit.Kind, fmt.Sprint(k.Partition())); (owner == first.node.Address()) == owned {
			keys = append(keys, k)
		}
	}
	b.ResetTimer()
	b.ReportAllocs()
	var next atomic.Int64
	var work sync.WaitGroup
	for range callers {
		work.Go(func() {
			demands, stands := make([]domain.Demand, 1), make([]domain.Standing, 1)
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				demands[0] = domain.Demand{Key: keys[i%500], Limit: 4000, Period: 20 * time.Millisecond}
				first.Allow(context.Background(), demands, stands)
			}
		})
	}
	work.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	s := first.Stats()
	if s.Shared > 0 {
		b.Logf("%+v", s)
	}
	b.ReportMetric(float64(s.Asked)/float64(max(1, s.Batches)), "per-batch")
	for _, m := range all {
		m.node.Stop(context.Background())
		m.Close()
	}
}
