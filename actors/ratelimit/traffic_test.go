package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"castellan/domain/guard/ratelimit"
)

// demand is a demand on a rule of so many in a minute.
func demand(rule, name string, limit int64) ratelimit.Demand {
	return ratelimit.Demand{Key: ratelimit.Key{Rule: rule, Name: name}, Limit: limit, Period: time.Minute}
}

// traffic are clients that request keys from every living node, and count the admissions.
type traffic struct {
	w        *world
	mu       sync.Mutex
	targets  []string
	admitted map[string]int
	stop     chan struct{}
	work     sync.WaitGroup
	slowest  time.Duration

	undecided int
}

// run starts clients that request all keys in turn, each with a pause between two requests.
func (w *world) run(keys, clients int, limit int64, targets ...string) *traffic {
	tr := &traffic{w: w, targets: targets, admitted: map[string]int{}, stop: make(chan struct{})}
	for i := range clients {
		tr.work.Go(func() {
			for k := i; ; k++ {
				select {
				case <-tr.stop:
					return
				case <-time.After(w.pause):
				}
				tr.mu.Lock()
				to := w.node(tr.targets[(k*7+i)%len(tr.targets)])
				tr.mu.Unlock()
				key := fmt.Sprint("k", k%keys)
				began := time.Now()
				ok, err := w.ask(to, demand("r", key, limit))
				took := time.Since(began)
				tr.mu.Lock()
				if tr.slowest = max(tr.slowest, took); err != nil {
					tr.undecided++ // it retries later
				} else if ok {
					tr.admitted[key]++
				}
				tr.mu.Unlock()
			}
		})
	}
	return tr
}

func (tr *traffic) aim(targets ...string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.targets = targets
}

// over ends the traffic and returns how many of its keys had more or fewer admissions than the limit.
func (tr *traffic) over(limit int) (more, fewer, worst int) {
	close(tr.stop)
	tr.work.Wait()
	for _, n := range tr.admitted {
		worst = max(worst, n)
		if n > limit {
			more++
		} else if n < limit {
			fewer++
		}
	}
	return more, fewer, worst
}

// ask sends a request to one node, which receives and answers it only while it runs. The client waits for a
// second.
func (w *world) ask(to *node, d ratelimit.Demand) (admits bool, err error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	type answer struct {
		admits bool
		err    error
	}
	got := make(chan answer, 1)
	go func() {
		if !to.awake() || ctx.Err() != nil { // the connection is closed
			return
		}
		admits, err := to.Allow(ctx, []ratelimit.Demand{d}, make([]ratelimit.Standing, 1))
		if to.awake() {
			got <- answer{admits, err}
		}
	}()
	select {
	case a := <-got:
		return a.admits, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
