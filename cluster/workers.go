package cluster

import "sync/atomic"

// workers run the mailboxes. A step reaches deep, into the database or into a
// signature, and a new goroutine pays for that with copies of its growing
// stack; a kept one has grown. It implements actor.Dispatcher.
type workers struct {
	work chan func()
	stop chan struct{}
	idle atomic.Int32
}

// maxIdle is how many goroutines wait for work at most; any number may work.
const maxIdle = 64

func newWorkers() *workers {
	return &workers{work: make(chan func()), stop: make(chan struct{})}
}

// Throughput is how many messages one activation may handle before others get
// their turn: protoactor's own number.
func (w *workers) Throughput() int { return 300 }

// Schedule runs f on a goroutine that waits, or on a new one. It never blocks.
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

// close lets those that wait end.
func (w *workers) close() { close(w.stop) }
