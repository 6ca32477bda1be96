package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/commit"
)

// place is an outbox with nothing due, a sender, and the settled messages.
type place struct {
	mu      sync.Mutex
	sent    []string
	settled []outbox.Settle
	outbox.Store
}

func (p *place) Claim(context.Context, time.Time, time.Duration, int) ([]outbox.Message, error) {
	return nil, nil
}

func (p *place) Erase(context.Context, time.Time) error { return nil }

func (p *place) Send(_ context.Context, key string, _ message.Rendered) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, key)
	return nil
}

func (p *place) Commit(_ context.Context, ws ...commit.Write) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range ws {
		if s, is := w.(outbox.Settle); is {
			p.settled = append(p.settled, s)
		}
	}
	return nil
}

func (p *place) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// A discarded message is settled like a sent one, keeps no payload, and is never sent.
func TestDiscardedMessagesAreSettledAndNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &place{}
		d := New(
			Options{
				Store:       p,
				Commit:      p,
				Senders:     map[message.Channel]message.Sender{message.SMS: p},
				Keep:        true,
				Lease:       time.Minute,
				MaxAttempts: 3,
				Now:         time.Now,
				Log:         slog.New(slog.DiscardHandler),
			},
		)
		d.Start()
		for _, state := range []outbox.State{outbox.Discarded, outbox.Queued} {
			d.Deliver(
				outbox.Message{
					ID:        "of state " + string(rune('0'+state)),
					Channel:   message.SMS,
					State:     state,
					ExpiresAt: time.Now().Add(time.Hour),
					Payload:   []byte("sealed"),
				},
				message.Rendered{},
			)
		}
		synctest.Wait()
		d.Stop()
		if len(p.sent) != 1 || p.sent[0] != "of state 0" || len(p.settled) != 2 {
			t.Fatalf("sent %v, settled %+v", p.sent, p.settled)
		}
		for _, s := range p.settled {
			if discarded := s.ID == "of state 2"; discarded != (s.State == outbox.Discarded) || s.Keep == discarded ||
				s.Attempt != 1 {
				t.Errorf("%+v", s)
			}
		}
	})
}
