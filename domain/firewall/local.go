package firewall

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"castellan/domain/window"
)

// Local is the Counter of one node: windows in memory, spread over shards that
// each have a lock. A request under several keys holds the locks of all of them
// while it is decided.
type Local struct {
	now    func() time.Time
	origin time.Time
	seed   maphash.Seed
	shards [localShards]localShard
}

const localShards = 256

type localShard struct {
	mu      sync.Mutex
	windows map[Key]*window.Window
	_       [40]byte // neighbours do not share a line of the cache
}

var _ Counter = (*Local)(nil)

// NewLocal returns a Local without a count. now must not be nil.
func NewLocal(now func() time.Time) *Local {
	return &Local{now: now, origin: now(), seed: maphash.MakeSeed()}
}

// instant reads the clock inside the locks, so that windows see time in order.
// A difference of two readings is monotonic.
func (l *Local) instant() int64 { return int64(l.now().Sub(l.origin)) }

func (l *Local) shard(k Key) int { return int(maphash.Comparable(l.seed, k) % localShards) }

// Allow implements Counter.
func (l *Local) Allow(_ context.Context, demands []Demand, stands []window.Standing) (admitted bool, err error) {
	if len(demands) == 1 { // the common case
		d := &demands[0]
		s := &l.shards[l.shard(d.Key)]
		s.mu.Lock()
		now := l.instant()
		stands[0] = s.look(d, now)
		if admitted = stands[0].Retry == 0; admitted {
			stands[0] = s.admit(d, now)
		}
		s.mu.Unlock()
		return admitted, nil
	}
	var room [16]int
	order := l.lock(demands, room[:0])
	now := l.instant()
	admitted = true
	for i := range demands {
		stands[i] = l.shards[l.shard(demands[i].Key)].look(&demands[i], now)
		admitted = admitted && stands[i].Retry == 0
	}
	if admitted {
		for i := range demands {
			stands[i] = l.shards[l.shard(demands[i].Key)].admit(&demands[i], now)
		}
	}
	l.unlock(order)
	return admitted, nil
}

// Look implements Counter.
func (l *Local) Look(_ context.Context, demands []Demand, stands []window.Standing) error {
	for i := range demands {
		s := &l.shards[l.shard(demands[i].Key)]
		s.mu.Lock()
		stands[i] = s.look(&demands[i], l.instant())
		s.mu.Unlock()
	}
	return nil
}

// lock takes the locks of some keys, each once and in one order for everybody.
func (l *Local) lock(demands []Demand, order []int) []int {
	for i := range demands {
		order = append(order, l.shard(demands[i].Key))
	}
	slices.Sort(order)
	order = slices.Compact(order)
	for _, i := range order {
		l.shards[i].mu.Lock()
	}
	return order
}

func (l *Local) unlock(order []int) {
	for _, i := range order {
		l.shards[i].mu.Unlock()
	}
}

func (s *localShard) look(d *Demand, now int64) (at window.Standing) {
	if w := s.windows[d.Key]; w != nil {
		return w.Look(now, d.rule())
	}
	return at
}

// admit makes the window of a key with its first admission: asking leaves
// nothing behind.
func (s *localShard) admit(d *Demand, now int64) window.Standing {
	w := s.windows[d.Key]
	if w == nil {
		if s.windows == nil {
			s.windows = map[Key]*window.Window{}
		}
		w = new(window.Window)
		s.windows[d.Key] = w
	}
	w.Admit(now, d.rule())
	at := w.Look(now, d.rule())
	at.Retry = 0
	return at
}

// Sweep forgets the windows in which nothing counts any more. It holds one shard
// at a time.
func (l *Local) Sweep() {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		now := l.instant()
		for k, w := range s.windows {
			if w.Idle(now) {
				delete(s.windows, k)
			}
		}
		if len(s.windows) == 0 {
			s.windows = nil // a map that was large stays large
		}
		s.mu.Unlock()
	}
}

// Keys is how many windows are kept.
func (l *Local) Keys() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.windows)
		s.mu.Unlock()
	}
	return n
}
