package password

import (
	"context"
	"time"

	"castellan/domain/kit/fault"
)

// patience bounds the total wait of one try. A try that need not wait has no cost.
type patience struct {
	since time.Time // zero: from the first wait
	wait  time.Duration
	timer *time.Timer
}

// take puts a token into a channel of capacity one. Waiting callers are served in the order of arrival, and none is
// overtaken.
func (p *patience) take(ctx context.Context, token chan<- struct{}) error {
	select {
	case token <- struct{}{}:
		return nil
	default:
	}
	select {
	case token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over():
		return p.overloaded()
	}
}

// await waits until done is closed.
func (p *patience) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over():
		return p.overloaded()
	}
}

func (p *patience) over() <-chan time.Time {
	if p.timer == nil {
		left := p.wait
		if !p.since.IsZero() {
			left -= time.Since(p.since)
		}
		p.timer = time.NewTimer(left)
	}
	return p.timer.C
}

func (p *patience) end() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *patience) overloaded() error {
	return fault.New(fault.Overloaded, "too many logins to the account are waiting; try again").After(p.wait)
}
