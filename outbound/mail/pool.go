package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// pool limits the open connections and keeps unused ones for a while. The last returned connection is used first, so a
// quiet service holds one.
type pool struct {
	dial  func(context.Context) (*session, error)
	slots chan struct{} // one for each connection in use

	mu      sync.Mutex
	idle    []*idleSession
	closed  bool
	leaving sync.WaitGroup // connections that are quitting
}

type idleSession struct {
	*session
	expiry *time.Timer
}

var errClosed = errors.New("the sender is closed")

func newPool(size int, dial func(context.Context) (*session, error)) *pool {
	return &pool{dial: dial, slots: make(chan struct{}, size)}
}

// do lends a connection to f. If a kept connection ended before the server accepted anything, f runs again on a new
// one.
func (p *pool) do(ctx context.Context, f func(*session) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("all connections are in use: %w", ctx.Err())
	}
	defer func() { <-p.slots }()

	c, err := p.take()
	if err != nil {
		return err
	}
	if c != nil {
		err := f(c)
		var failed *failure
		if stale := errors.As(err, &failed) && failed.stage == naming && failed.lost() && ctx.Err() == nil; !stale {
			p.give(c, err)
			return err
		}
		c.raw.Close()
	}
	if c, err = p.dial(ctx); err != nil {
		return err
	}
	err = f(c)
	p.give(c, err)
	return err
}

// take returns an idle connection or nil.
func (p *pool) take() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	n := len(p.idle) - 1
	if n < 0 {
		return nil, nil
	}
	last := p.idle[n]
	p.idle = p.idle[:n]
	last.expiry.Stop() // a timer that fires all the same does not find it
	return last.session, nil
}

// give keeps c for the next message unless err or its age forbids it.
func (p *pool) give(c *session, err error) {
	if f, is := errors.AsType[*failure](err); is && f.lost() {
		c.raw.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed: // close may be waiting already
		c.raw.Close()
		return
	case c.begun >= messagesPerConnection:
		p.leaving.Go(c.quit)
		return
	}
	kept := &idleSession{session: c}
	kept.expiry = time.AfterFunc(keepIdle, func() { p.expire(kept) })
	p.idle = append(p.idle, kept)
}

func (p *pool) expire(kept *idleSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, kept); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		p.leaving.Go(kept.quit)
	}
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, kept := range p.idle {
		kept.expiry.Stop()
		p.leaving.Go(kept.quit)
	}
	p.idle = nil
	p.mu.Unlock()
	p.leaving.Wait()
}
