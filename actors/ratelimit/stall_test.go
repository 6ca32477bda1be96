package ratelimit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/guard/ratelimit"
)

var stalls = flag.Int("stalls", 12, "how many orders of standstills TestStandstills tries")
var stall = flag.Uint64("stall", 0, "the only order that TestStandstills tries")

// While every node stalls for 100 to 500 ms in every second, a limit of 200 admits 200, and not many fewer. A client
// that receives nothing for a second, or 503, calls another node.
func TestStandstills(t *testing.T) {
	for i := range *stalls {
		seed := uint64(i + 1)
		if *stall != 0 {
			seed = *stall
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { standstills(t, rand.New(rand.NewPCG(seed, 1))) })
		})
		if *stall != 0 {
			return
		}
	}
}

func standstills(t *testing.T, rng *rand.Rand) {
	const limit, keys = 200, 20
	w := together(t)
	defer w.close()
	calm := make(chan struct{})
	var work sync.WaitGroup
	for _, id := range three {
		own := rand.New(rand.NewPCG(rng.Uint64(), 2))
		work.Go(func() { w.stumbles(id, own, calm) })
	}
	c := &clients{w: w, t: t, limit: limit, admitted: make([]int, keys), refused: make([]int, keys)}
	stop := make(chan struct{})
	for range 16 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 3))
		work.Go(func() { c.run(own, stop) })
	}
	for end := time.Now().Add(50 * time.Second); !c.done() && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	close(stop)
	close(calm)
	work.Wait()
	sum, over, least := 0, 0, limit
	for _, n := range c.admitted {
		sum, over, least = sum+n, max(over, n-limit), min(least, n)
	}
	for id, n := range w.nodes {
		t.Logf("%s: %+v, patience %v", id, n.Stats(), n.member(three[0]).asking.patience())
	}
	t.Logf("%d of %d, at most %d over, at least %d; %d asked again, at most %d times, %v without an answer", sum,
		keys*limit, over, least, c.again, c.turns, c.longest)
	if over > 0 || sum < keys*limit*99/100 {
		t.Errorf("%d of %d let in, at most %d over", sum, keys*limit, over)
	}
	if !c.done() {
		t.Error("some key was not refused within 50 s")
	}
}

// stumbles stalls a node once in every second.
func (w *world) stumbles(id string, rng *rand.Rand, calm chan struct{}) {
	for {
		long := 100*time.Millisecond + time.Duration(rng.Int64N(int64(400*time.Millisecond)))
		before := time.Duration(rng.Int64N(int64(time.Second - long)))
		select {
		case <-calm:
			return
		case <-time.After(before):
		}
		w.freeze(id)
		time.Sleep(long)
		w.thaw(id, false)
		time.Sleep(time.Second - before - long)
	}
}

// clients send requests for keys to all nodes, and retry at the next node when one does not answer.
type clients struct {
	w                 *world
	t                 *testing.T
	limit             int64
	mu                sync.Mutex
	admitted, refused []int
	again, turns      int
	longest           time.Duration
}

func (c *clients) run(rng *rand.Rand, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.Int64N(int64(4 * time.Millisecond)))):
		}
		k, at, began := rng.IntN(len(c.admitted)), rng.IntN(len(three)), time.Now()
		for turn := 0; ; turn++ {
			admits, err := c.w.ask(c.w.node(three[(at+turn)%3]), demand("r", fmt.Sprint("k", k), c.limit))
			c.mu.Lock()
			switch {
			case err != nil:
				c.again++
				c.turns = max(c.turns, turn+1)
			case admits:
				c.admitted[k]++
			default:
				c.refused[k]++
			}
			c.longest = max(c.longest, time.Since(began))
			c.mu.Unlock()
			if err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (c *clients) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.refused {
		if n < 20 {
			return false
		}
	}
	return true
}

// A turn does not wait, also for a replica or an owner that does not answer: it ends in the instant in which it began.
func TestTurnsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := together(t)
		defer w.close()
		own, foreign := keyOf("a", "b"), keyOf("b", "c")
		w.freeze("b")
		w.freeze("c")
		host := w.nodes["a"].Hosted().Host
		for _, name := range []string{own, foreign} {
			id := ratelimit.Key{Rule: "r", Name: name}.ID()
			for range 3 {
				for _, m := range []proto.Message{&pb.RateDecide{Limit: 9, PeriodMs: 1000, Cost: 2}, &pb.RatePeek{},
					&pb.RateDecide{Limit: 9, PeriodMs: 1000, Name: 7}, &pb.RatePeek{Limit: 9, PeriodMs: 1000},
					&pb.RateReset{}, &pb.RateTop{}} {
					began := time.Now()
					host.Turn(&cluster.Turn{ID: id, Message: m, From: "c"})
					if waited := time.Since(began); waited > 0 {
						t.Errorf("%T of %s waits for %v", m, id, waited)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		w.thaw("b", false)
		w.thaw("c", false)
	})
}
