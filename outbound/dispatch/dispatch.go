// Package dispatch delivers the outbox: the node that committed a message
// sends it at once under its lease, and any node takes over what a lease
// lapsed on (D-EXT-05). Delivery is at least once, with the message's id as
// the key by which the other side recognises a repeat.
package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/message"
	"castellan/domain/outbox"
)

// Options of a Dispatcher.
type Options struct {
	Store  outbox.Store
	Commit commit.Committer
	// Open is the keyring's.
	Open    func(sealed, ad []byte) ([]byte, error)
	Senders map[message.Channel]message.Sender
	// Keep leaves payloads in the outbox after delivery, for the development
	// outbox.
	Keep bool
	// Gone is told of a destination that is no more, by the message that found
	// it out, so that nothing is sent there again; nil tells nobody. It runs
	// between two deliveries of a channel and holds up the next one.
	Gone        func(ctx context.Context, m outbox.Message, r message.Rendered)
	Workers     int           // per channel
	Lease       time.Duration // how long a claimed message is ours
	RetryMin    time.Duration
	RetryMax    time.Duration
	MaxAttempts int
	Poll        time.Duration // how often lapsed leases are looked for; 0: 1 s
	Now         func() time.Time
	Log         *slog.Logger
}

// Dispatcher implements stepup.Dispatcher.
type Dispatcher struct {
	o       Options
	queues  map[message.Channel]chan job
	settled chan outbox.Settle
	stop    chan struct{}
	workers sync.WaitGroup
	settler sync.WaitGroup

	// Sent, Failed and Retried count deliveries, for metrics; Gone counts those
	// of Failed whose destination is no more.
	Sent, Failed, Retried, Gone atomic.Int64
}

type job struct {
	m outbox.Message
	r message.Rendered
}

const queueLength = 4096

// New returns a dispatcher; Start begins to deliver.
func New(o Options) *Dispatcher {
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	d := &Dispatcher{
		o:       o,
		queues:  map[message.Channel]chan job{},
		settled: make(chan outbox.Settle, queueLength),
		stop:    make(chan struct{}),
	}
	for c := range o.Senders {
		d.queues[c] = make(chan job, queueLength)
	}
	return d
}

// Offers implements stepup.Dispatcher.
func (d *Dispatcher) Offers(c message.Channel) bool { return d.o.Senders[c] != nil }

// Deliver implements stepup.Dispatcher.
func (d *Dispatcher) Deliver(m outbox.Message, r message.Rendered) {
	select {
	case d.queues[m.Channel] <- job{m, r}:
	default: // the lease lapses and the message is claimed
	}
}

// Waiting is the number of messages that wait for a worker.
func (d *Dispatcher) Waiting() int {
	n := 0
	for _, q := range d.queues {
		n += len(q)
	}
	return n
}

// Start begins to deliver.
func (d *Dispatcher) Start() {
	for c, q := range d.queues {
		for range max(1, d.o.Workers) {
			d.workers.Go(func() { d.work(d.o.Senders[c], q) })
		}
	}
	d.workers.Go(d.poll)
	d.settler.Go(d.settle)
}

// Stop ends deliveries after those that are under way. What waits is left to
// the leases.
func (d *Dispatcher) Stop() {
	close(d.stop)
	d.workers.Wait()
	close(d.settled)
	d.settler.Wait()
}

func (d *Dispatcher) work(s message.Sender, q chan job) {
	for {
		select {
		case <-d.stop:
			return
		case j := <-q:
			d.settled <- d.send(s, j)
		}
	}
}

func (d *Dispatcher) send(s message.Sender, j job) outbox.Settle {
	now := d.o.Now()
	out := outbox.Settle{ID: j.m.ID, At: now, Attempt: j.m.Attempts + 1, Keep: d.o.Keep}
	if j.m.State == outbox.Discarded {
		out.State, out.Keep = outbox.Discarded, false
		return out
	}
	if !now.Before(j.m.ExpiresAt) { // a code of no use any more is not sent
		out.State = outbox.Expired
		return out
	}
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(d.o.Lease))
	defer cancel()
	err := s.Send(ctx, j.m.ID, j.r)
	var de *message.DeliveryError
	switch {
	case err == nil:
		out.State = outbox.Sent
		d.Sent.Add(1)
	case message.IsPermanent(err), out.Attempt >= d.o.MaxAttempts:
		out.State = outbox.Failed
		d.Failed.Add(1)
		if message.IsGone(err) {
			d.Gone.Add(1)
			if d.o.Gone != nil {
				d.o.Gone(ctx, j.m, j.r)
			}
		}
		d.o.Log.Warn("message not deliverable", "id", j.m.ID, "channel", j.m.Channel, "attempts", out.Attempt, "err", err)
	default:
		pause := min(d.o.RetryMin<<min(j.m.Attempts, 16), d.o.RetryMax)
		if errors.As(err, &de) {
			pause = max(pause, de.RetryAfter)
		}
		out.State, out.NextAt = outbox.Queued, now.Add(pause)
		d.Retried.Add(1)
		d.o.Log.Warn("message will be sent again", "id", j.m.ID, "channel", j.m.Channel, "attempts", out.Attempt, "err", err)
	}
	return out
}

// ripe is how long the outcome of a delivery may wait for others. Nobody waits
// for it, whereas the answer to the message comes soon, and would have to wait
// for a commit of its own.
const ripe = 50 * time.Millisecond

// settle writes down what became of deliveries, many together. After a crash
// those that were not written down are sent once more, with the same keys.
func (d *Dispatcher) settle() {
	for s := range d.settled {
		ws := []commit.Write{commit.Unflushed{}, s}
		due := time.NewTimer(ripe)
	gather:
		for len(ws) < 256 {
			select {
			case s, ok := <-d.settled:
				if !ok {
					break gather
				}
				ws = append(ws, s)
			case <-due.C:
				break gather
			}
		}
		due.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := d.o.Commit.Commit(ctx, ws...); err != nil {
			// The leases lapse and these are sent once more, with the same keys.
			d.o.Log.Warn("deliveries could not be settled", "count", len(ws)-1, "err", err)
		}
		cancel()
	}
}

// poll claims what is due: retries, and what another node left.
func (d *Dispatcher) poll() {
	tick := time.NewTicker(d.o.Poll)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		}
		now := d.o.Now()
		ctx, cancel := context.WithTimeout(context.Background(), d.o.Lease)
		if err := d.o.Store.Erase(ctx, now); err != nil {
			d.o.Log.Warn("expired messages could not be erased", "err", err)
		}
		ms, err := d.o.Store.Claim(ctx, now, d.o.Lease, 64)
		if err != nil {
			d.o.Log.Warn("due messages could not be claimed", "err", err)
		}
		cancel()
		for _, m := range ms {
			d.claimed(m)
		}
	}
}

func (d *Dispatcher) claimed(m outbox.Message) {
	r, err := Unseal(d.o.Open, m)
	if err != nil || d.o.Senders[m.Channel] == nil {
		d.o.Log.Warn("message cannot be sent", "id", m.ID, "channel", m.Channel, "err", err)
		d.settled <- outbox.Settle{ID: m.ID, State: outbox.Failed, At: d.o.Now(), Attempt: m.Attempts}
		return
	}
	d.Deliver(m, r)
}

// Unseal opens the payload of a message.
func Unseal(open func(sealed, ad []byte) ([]byte, error), m outbox.Message) (r message.Rendered, err error) {
	plain, err := open(m.Payload, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
	if err != nil {
		return r, err
	}
	return r, r.UnmarshalBinary(plain)
}

// Local is the sender of development mode: delivery is being in the outbox.
type Local struct{}

// Send implements message.Sender.
func (Local) Send(context.Context, string, message.Rendered) error { return nil }
