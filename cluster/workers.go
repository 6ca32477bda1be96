package cluster

import "sync/atomic"

// workers run the mailboxes. A step has a deep stack, in the database or in a signature, and a new goroutine must copy
// its growing stack; a kept goroutine has grown already.
type workers struct {
	work chan func()
	stop chan struct{}
	idle atomic.Int32
}

// maxIdle is the maximum number of idle goroutines; the number of busy ones is not limited.
const maxIdle = 64

func newWorkers() *workers {
	return &workers{work: make(chan func()), stop: make(chan struct{})}
}

// Throughput is how many messages one activation may handle before others get their turn: protoactor's own number.
func (w *workers) Throughput() int { return 300 }

// Schedule runs f on an idle goroutine, or on a new one. It never blocks.
func (w *workers) Schedule(f func()) {
	select {
	case w.work <- f:
	default:
		go w.run(f)
	}
}

func (w *workers) run(f func()) {
	for {
		f()
		if w.idle.Add(1) > maxIdle {
			w.idle.Add(-1)
			return
		}
		select {
		case f = <-w.work:
			w.idle.Add(-1)
		case <-w.stop:
			return
		}
	}
}

// close ends the idle goroutines.
func (w *workers) close() { close(w.stop) }
