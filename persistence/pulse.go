package persistence

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A database that does not answer is worse than one that refuses: whoever asks
// waits, and those behind him wait in turn. The feed of changes is read several
// times a second, so it tells: once a read of it has been silent for pulseBeats,
// everything that waits for the database is refused, and so is whatever is asked,
// until a read is answered again.
//
// Beats are counted and not time measured: a process that is stopped, or gets no
// processor, does not take its own silence for the database's.
const (
	pulseBeat  = 50 * time.Millisecond
	pulseBeats = 15
)

// errSilent is why what waits for a silent database is broken off.
var errSilent = errors.New("the database does not answer")

// pulse is what is known of whether the database answers.
type pulse struct {
	mu    sync.Mutex
	alive context.Context // ends while the database is silent
	lost  context.CancelCauseFunc
	deaf  bool
}

func newPulse() *pulse {
	p := &pulse{}
	p.alive, p.lost = context.WithCancelCause(context.Background())
	return p
}

// until ends with ctx, and as soon as the database is silent.
func (p *pulse) until(ctx context.Context) (context.Context, context.CancelFunc) {
	p.mu.Lock()
	alive := p.alive
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(alive, cancel)
	if alive.Err() != nil {
		cancel()
	}
	return ctx, func() { stop(); cancel() }
}

// watch counts the beats of a read until the returned function is told that it
// was answered, or was not.
func (p *pulse) watch() (done func(answered bool)) {
	over := make(chan struct{})
	go func() {
		for range pulseBeats {
			select {
			case <-over:
				return
			case <-time.After(pulseBeat):
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-over:
		default:
			p.deaf = true
			p.lost(errSilent)
		}
	}()
	return func(answered bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(over)
		if answered && p.deaf {
			p.deaf = false
			p.alive, p.lost = context.WithCancelCause(context.Background())
		}
	}
}
