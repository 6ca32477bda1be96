package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of the wait for another node: a little longer than its recent answers took (D-WAF-13).
const (
	leastPatience = 75 * time.Millisecond
	mostPatience  = 500 * time.Millisecond
)

// latency is the distribution of one member's recent answer times. Each answer is weighted with its duration, so the
// distribution gives the wait from a random instant on. Otherwise a thousand quick answers would hide that the member
// stalls for a third of each second.
type latency struct {
	mu     sync.Mutex
	counts [len(latencyBounds) + 1]int64 // microseconds, by bound
	total  int64
	halved int64 // when the counts were last halved
	wait   atomic.Int64
}

var latencyBounds = [...]time.Duration{25e6, 37e6, 50e6, 75e6, 100e6, 125e6, 150e6, 200e6, 250e6, 300e6}

// latencyHalves is the half-life of a measurement.
const latencyHalves = int64(10 * time.Second)

// patience returns how long to wait: 1.5 times the 99.9th percentile.
func (l *latency) patience() time.Duration {
	if w := l.wait.Load(); w > 0 {
		return time.Duration(w)
	}
	return leastPatience
}

// observe records the duration of an answer. now is by the clock of the windows.
func (l *latency) observe(took time.Duration, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now-l.halved > latencyHalves {
		l.total, l.halved = 0, now
		for i := range l.counts {
			l.counts[i] /= 2
			l.total += l.counts[i]
		}
	}
	i := 0
	for i < len(latencyBounds) && took > latencyBounds[i] {
		i++
	}
	weight := max(1, took.Microseconds())
	l.counts[i] += weight
	l.total += weight
	above, wait := l.total/1000, leastPatience
	for i := len(latencyBounds); i >= 0; i-- {
		if above -= l.counts[i]; above < 0 {
			if wait = mostPatience; i < len(latencyBounds) {
				wait = latencyBounds[i] * 3 / 2
			}
			break
		}
	}
	l.wait.Store(int64(min(mostPatience, max(leastPatience, wait))))
}

// standstill detects that this process did not run for a while: it was stopped, or got no processor. After a stall, a
// node judges no member, because answers may have arrived in time. As a replica, it may have been given up.
type standstill struct {
	last  atomic.Int64 // the last beat, by the clock of the windows
	until atomic.Int64 // when the node last resumed after a stall
}

const (
	beatInterval = 20 * time.Millisecond
	// leastStandstill is less than any patience.
	leastStandstill = 60 * time.Millisecond
)

// beat is called every beatInterval. It reports whether the node stalled.
func (s *standstill) beat(now int64) (stood bool) {
	if stood = now-s.last.Load() > int64(leastStandstill); stood {
		s.until.Store(now)
	}
	s.last.Store(now)
	return stood
}

// since reports whether the node stalled after an instant, or stalls now.
func (s *standstill) since(instant, now int64) bool {
	return s.until.Load() > instant || now-s.last.Load() > int64(leastStandstill)
}
