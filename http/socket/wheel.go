package socket

import (
	"sync"
	"time"
)

// The wheel turns by one place each tick, and by all of them in 25 seconds,
// which is longer than a socket is ever left alone. A short tick spreads the
// pings of sockets that were opened in one storm.
const (
	tick   = 50 * time.Millisecond
	places = 512
)

// wheel keeps the times of all sockets: one goroutine looks at those whose
// time has come, and at no others. A socket stands in one place at most. One
// that has ended is dropped when its turn comes.
type wheel struct {
	mu    sync.Mutex
	start time.Time
	at    int64 // ticks since start that have been handled
	place [places][]*conn
}

// add has c looked at once due has come, at most a tick late.
func (w *wheel) add(c *conn, due time.Time) {
	n := int64((due.Sub(w.start) + tick - 1) / tick)
	w.mu.Lock()
	n = min(max(n, w.at+1), w.at+places)
	w.place[n%places] = append(w.place[n%places], c)
	w.mu.Unlock()
}

// turn tends to the sockets whose time has come by now.
func (w *wheel) turn(now time.Time) {
	for n := int64(now.Sub(w.start) / tick); ; {
		w.mu.Lock()
		if w.at >= n {
			w.mu.Unlock()
			return
		}
		w.at++
		due := w.place[w.at%places]
		w.place[w.at%places] = nil
		w.mu.Unlock()
		for _, c := range due {
			if next, more := c.tend(now); more {
				w.add(c, next)
			}
		}
	}
}
