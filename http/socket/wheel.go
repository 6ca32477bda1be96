package socket

import (
	"sync"
	"time"
)

// The wheel turns by one place each tick, and fully in 25 seconds, which is longer than any
// wait of a socket. A short tick spreads the pings of sockets that were opened at the same
// time.
const (
	tick   = 50 * time.Millisecond
	places = 512
)

// wheel keeps the timers of all sockets: one goroutine handles only the due ones. A socket is
// in at most one place. An ended socket is dropped when it is due.
type wheel struct {
	mu    sync.Mutex
	start time.Time
	at    int64 // ticks since start that have been handled
	place [places][]*conn
}

// add schedules c for due, at most a tick late.
func (w *wheel) add(c *conn, due time.Time) {
	n := int64((due.Sub(w.start) + tick - 1) / tick)
	w.mu.Lock()
	n = min(max(n, w.at+1), w.at+places)
	w.place[n%places] = append(w.place[n%places], c)
	w.mu.Unlock()
}

// turn handles the sockets that are due by now.
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
			if next, more := c.doDueWork(now); more {
				w.add(c, next)
			}
		}
	}
}
