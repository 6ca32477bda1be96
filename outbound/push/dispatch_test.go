package push

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/outbound/dispatch"
)

// place is an outbox whose rows are due once, and their results.
type place struct {
	outbox.Store
	settled chan outbox.Settle

	mu  sync.Mutex
	due []outbox.Message
}

func (p *place) Claim(context.Context, time.Time, time.Duration, int) ([]outbox.Message, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.due
	p.due = nil
	return due, nil
}

func (p *place) Erase(context.Context, time.Time) error { return nil }

func (p *place) Commit(_ context.Context, ws ...commit.Write) error {
	for _, w := range ws {
		if s, is := w.(outbox.Settle); is {
			p.settled <- s
		}
	}
	return nil
}

func (p *place) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// row returns the row that the start of a push writes: the message sealed like any other.
func row(t *testing.T, ring *keyring.Ring, id, target string) outbox.Message {
	t.Helper()
	plain := storetest.Value(to(target).AppendBinary(nil))(t)
	return outbox.Message{
		ID:          id,
		ChallengeID: "01JD0000000000000000000000",
		MethodID:    id,
		UserID:      "u-" + id,
		Channel:     message.Push,
		State:       outbox.Queued,
		ExpiresAt:   time.Now().Add(time.Minute),
		Payload:     ring.Seal(plain, challenge.PayloadData("01JD0000000000000000000000", id, 0)),
	}
}

// A row of the outbox wakes a device. The answer of a push service decides whether it is sent again, when, and whether
// the target no longer exists.
func TestRowsOfTheOutbox(t *testing.T) {
	s := newService(t, true)
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/busy":
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/refuses":
			w.WriteHeader(http.StatusForbidden)
		}
	})
	ring := keyringtest.Ring(t, nil)
	d := newDevice(t, s.URL+"/woken")
	gone := newDevice(t, s.URL+"/gone").target
	p := &place{settled: make(chan outbox.Settle, 8), due: []outbox.Message{
		row(t, ring, "woken", d.target), row(t, ring, "gone", gone), row(t, ring, "busy", hook(s.URL+"/busy")),
		row(t, ring, "refuses", hook(s.URL+"/refuses")), row(t, ring, "inside", hook("https://169.254.169.254/latest")),
	}}
	var log strings.Builder
	var told []string
	out := dispatch.New(
		dispatch.Options{
			Store:       p,
			Commit:      p,
			Open:        ring.Open,
			Senders:     map[message.Channel]message.Sender{message.Push: s.sender(t, nil)},
			Lease:       time.Minute,
			RetryMin:    time.Second,
			RetryMax:    time.Minute,
			MaxAttempts: 8,
			Poll:        time.Millisecond,
			Workers:     1,
			Now:         time.Now,
			Log:         slog.New(slog.NewTextHandler(&log, nil)),
			Gone:        func(_ context.Context, m outbox.Message, r message.Rendered) { told = append(told, m.UserID, r.To) },
		},
	)
	if !out.Offers(message.Push) {
		t.Error("the channel is not offered")
	}
	out.Start()
	want := map[string]outbox.State{
		"woken":   outbox.Sent,
		"gone":    outbox.Failed,
		"busy":    outbox.Queued,
		"refuses": outbox.Failed,
		"inside":  outbox.Failed,
	}
	for range want {
		got := <-p.settled
		if got.State != want[got.ID] || got.Attempt != 1 {
			t.Errorf("%s: %+v", got.ID, got)
		}
		if wait := got.NextAt.Sub(got.At); got.ID == "busy" && wait != 20*time.Second {
			t.Errorf("sent again after %v, the webhook asked for 20 s", wait)
		}
	}
	out.Stop()
	if out.Sent.Load() != 1 || out.Failed.Load() != 3 || out.Retried.Load() != 1 || out.Gone.Load() != 1 {
		t.Errorf("%d sent, %d failed, %d retried, %d gone", out.Sent.Load(), out.Failed.Load(), out.Retried.Load(),
			out.Gone.Load())
	}
	if len(told) != 2 || told[0] != "u-gone" || told[1] != gone {
		t.Errorf("told of %q", told)
	}
	storetest.Equal(t, opened(t, d.private, d.auth, s.received()[0].body), wakeup, "the device reads")
	for _, secret := range []string{"127.0.0.1", "169.254", hookSecret} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log: %s", secret, log.String())
		}
	}
}
