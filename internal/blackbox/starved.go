package blackbox

import (
	"sync"
	"testing"
	"time"
)

// Starved measures how long this process got no processor although it wanted one. A busy machine may make it wait, and
// a test of other processes must subtract that time.
type Starved struct {
	mu   sync.Mutex
	late []late
}

type late struct {
	at time.Time
	by time.Duration
}

const heartbeat = 10 * time.Millisecond

// WatchStarved measures until the test ends.
func WatchStarved(t testing.TB) *Starved {
	s, stop := &Starved{}, make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(heartbeat):
			}
			now := time.Now()
			if by := now.Sub(last) - heartbeat; by > heartbeat/2 {
				s.mu.Lock()
				s.late = append(s.late, late{now, by})
				s.mu.Unlock()
			}
			last = now
		}
	}()
	return s
}

// Since returns how much time was lost since an instant.
func (s *Starved) Since(at time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.late) - 1; i >= 0 && s.late[i].at.After(at); i-- {
		sum += s.late[i].by
	}
	return sum
}
