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
	// instant reads the clock, in nanoseconds since the start. It is read inside
	// the locks, so that windows see time in order.
	instant func() int64
	seed    maphash.Seed
	shards  [localShards]localShard
}

const localShards = 256

type localShard struct {
	mu      sync.Mutex
	windows map[Key]*window.Window
	_       [40]byte // neighbours do not share a line of the cache
}

var _ Counter = (*Local)(nil)

// NewLocal returns a Local without a count. Without now it goes by the monotonic
// clock of the machine, which is also the cheaper one to read.
func NewLocal(now func() time.Time) *Local {
	if now == nil {
		origin := time.Now()
		return &Local{instant: func() int64 { return int64(time.Since(origin)) }, seed: maphash.MakeSeed()}
	}
	origin := now()
	return &Local{instant: func() int64 { return int64(now().Sub(origin)) }, seed: maphash.MakeSeed()}
}

func (l *Local) shard(k Key) int { return int(maphash.Comparable(l.seed, k) % localShards) }

// Allow implements Counter.
func (l *Local) Allow(_ context.Context, demands []Demand, stands []window.Standing) (admitted bool, err error) {
	var room [8]int
	var found [8]*window.Window
	at, windows := room[:0], found[:0]
	for i := range demands {
		at = append(at, l.shard(demands[i].Key))
	}
	l.lock(at)
	now := l.instant()
	admitted = true
	for i, n := range at {
		w := l.shards[n].windows[demands[i].Key]
		windows = append(windows, w)
		stands[i] = look(w, &demands[i], now)
		admitted = admitted && stands[i].Retry == 0
	}
	if admitted {
		for i, n := range at {
			if windows[i] == nil {
				windows[i] = l.shards[n].add(demands[i].Key)
			}
			windows[i].Admit(now, demands[i].rule())
			if stands[i].Used++; stands[i].Used == 1 {
				stands[i].Reset = int64(demands[i].Period)
			}
		}
	}
	l.unlock(at)
	return admitted, nil
}

// Look implements Counter.
func (l *Local) Look(_ context.Context, demands []Demand, stands []window.Standing) error {
	for i := range demands {
		s := &l.shards[l.shard(demands[i].Key)]
		s.mu.Lock()
		stands[i] = look(s.windows[demands[i].Key], &demands[i], l.instant())
		s.mu.Unlock()
	}
	return nil
}

// lock takes the locks of some shards, each once and in one order for everybody.
func (l *Local) lock(at []int) {
	if len(at) == 1 { // the common case
		l.shards[at[0]].mu.Lock()
		return
	}
	for last := -1; ; {
		next := localShards
		for _, n := range at {
			if n > last {
				next = min(next, n)
			}
		}
		if next == localShards {
			return
		}
		l.shards[next].mu.Lock()
		last = next
	}
}

func (l *Local) unlock(at []int) {
	for i, n := range at {
		if !slices.Contains(at[:i], n) {
			l.shards[n].mu.Unlock()
		}
	}
}

// look is how a demand stands in its window; nil: nothing was ever counted.
func look(w *window.Window, d *Demand, now int64) (at window.Standing) {
	if w != nil {
		at = w.Look(now, d.rule())
	}
	return at
}

// add makes the window of a key, for its first admission: asking leaves nothing
// behind.
func (s *localShard) add(k Key) *window.Window {
	if s.windows == nil {
		s.windows = map[Key]*window.Window{}
	}
	w := new(window.Window)
	s.windows[k] = w
	return w
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
