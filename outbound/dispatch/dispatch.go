// Package dispatch delivers the outbox. The node that committed a message sends it at once under its lease, and any
// node takes over a message whose lease has expired (D-EXT-05). Delivery is at least once, and the message's id is the
// key by which the receiver recognises a repetition.
//
// Start at Dispatcher.Deliver; lane.go decides which message is next (D-EXT-06).
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
)

type Options struct {
	Store  outbox.Store
	Commit commit.Committer
	// Open is the Open function of the keyring.
	Open    func(sealed, ad []byte) ([]byte, error)
	Senders map[message.Channel]message.Sender
	// Keep keeps payloads in the outbox after delivery, for the development outbox.
	Keep bool
	// Gone is called when a message shows that its destination no longer exists, so that nothing is sent there again;
	// nil disables it. It runs as part of the delivery.
	Gone        func(ctx context.Context, m outbox.Message, r message.Rendered)
	Workers     int // concurrent attempts per channel, unless its rule sets a number
	Rules       map[message.Channel]Rule
	Lease       time.Duration // how long this node holds a claimed message
	RetryMin    time.Duration
	RetryMax    time.Duration
	MaxAttempts int
	Poll        time.Duration // how often expired leases are looked for; 0: 1 s
	Now         func() time.Time
	Log         *slog.Logger
}

type Dispatcher struct {
	o       Options
	lanes   map[message.Channel]*lane
	settled chan outbox.Settle
	stop    chan struct{}
	workers sync.WaitGroup
	settler sync.WaitGroup

	// Sent, Failed and Retried count deliveries, for metrics; Gone counts those of Failed whose destination no longer
	// exists. Rested counts the deliveries that were given up without another attempt because their host is paused;
	// Failed excludes them.
	Sent, Failed, Retried, Gone, Rested atomic.Int64
}

const queueLength = 4096 // per channel

// New returns a dispatcher; Start begins the delivery.
func New(o Options) *Dispatcher {
	o.Poll = cmp.Or(o.Poll, time.Second)
	d := &Dispatcher{
		o:       o,
		lanes:   map[message.Channel]*lane{},
		settled: make(chan outbox.Settle, queueLength),
		stop:    make(chan struct{}),
	}
	for c, s := range o.Senders {
		r := o.Rules[c]
		r.Slots = cmp.Or(r.Slots, max(1, o.Workers))
		d.lanes[c] = newLane(r, s, o.Lease)
	}
	return d
}

func (d *Dispatcher) Offers(c message.Channel) bool { return d.o.Senders[c] != nil }

func (d *Dispatcher) Deliver(m outbox.Message, r message.Rendered) {
	l := d.lanes[m.Channel]
	if l == nil {
		return
	}
	if j := l.add(m, r, d.o.Now(), &d.workers); j != nil {
		go d.run(l, j)
	}
}

// State returns the number of queued messages, of attempts under way, and of paused hosts and users.
func (d *Dispatcher) State() (waiting, underWay, resting int) {
	for _, l := range d.lanes {
		w, u, r := l.state(d.o.Now())
		waiting, underWay, resting = waiting+w, underWay+u, resting+r
	}
	return waiting, underWay, resting
}

// Start begins the delivery.
func (d *Dispatcher) Start() {
	for _, l := range d.lanes {
		l.setOpen(true)
		d.pump(l)
	}
	d.workers.Go(d.poll)
	d.settler.Go(d.settle)
}

// Stop ends deliveries after the attempts under way. The queued messages are left to their leases.
func (d *Dispatcher) Stop() {
	close(d.stop)
	for _, l := range d.lanes {
		l.setOpen(false)
	}
	d.workers.Wait()
	close(d.settled)
	d.settler.Wait()
}

// pump starts the attempts that may start.
func (d *Dispatcher) pump(l *lane) {
	for j := l.next(d.o.Now(), &d.workers); j != nil; j = l.next(d.o.Now(), &d.workers) {
		go d.run(l, j)
	}
}

// run makes one attempt after the other, until no message may go.
func (d *Dispatcher) run(l *lane, j *job) {
	for j != nil {
		d.deliver(l, j)
		next := l.next(d.o.Now(), &d.workers)
		if next != nil { // the freed slot may permit more than one
			d.pump(l)
		}
		d.workers.Done()
		j = next
	}
}

// deliver makes one attempt and records its result.
func (d *Dispatcher) deliver(l *lane, j *job) {
	began := d.o.Now()
	if l.stale(j, began) {
		l.end(j, unasked, 0, began)
		return
	}
	out, got := d.send(l, j, began)
	now := d.o.Now()
	d.settled <- out // while this waits for the disk the slot stays occupied
	if l.end(j, got, now.Sub(began), now) {
		d.o.Log.Warn("a host did not answer in time and is paused", "channel", j.m.Channel, "for", l.rule.Rest)
	}
}

// send sends a message, unless it has expired or its host is paused.
func (d *Dispatcher) send(l *lane, j *job, now time.Time) (outbox.Settle, answer) {
	out := outbox.Settle{ID: j.m.ID, At: now, Attempt: j.m.Attempts + 1, Keep: d.o.Keep}
	if j.m.State == outbox.Discarded {
		out.State, out.Keep = outbox.Discarded, false
		return out, unasked
	}
	if !now.Before(j.m.ExpiresAt) { // an expired code is not sent
		out.State = outbox.Expired
		return out, unasked
	}
	if until := l.resting(j, now); !until.IsZero() {
		out.State, out.Attempt, out.NextAt = outbox.Queued, j.m.Attempts, until
		if l.late(j.m, until) {
			out.State = outbox.Failed
			d.Rested.Add(1)
		}
		return out, unasked
	}
	deadline := now.Add(d.o.Lease)
	if !j.m.LeaseUntil.IsZero() && j.m.LeaseUntil.Before(deadline) {
		deadline = j.m.LeaseUntil
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	err := l.sender.Send(ctx, j.m.ID, j.r)
	got := answered
	if message.IsTimeout(err) {
		got = timedOut
	}
	pause, most := min(d.o.RetryMin<<min(j.m.Attempts, 16), d.o.RetryMax), d.o.MaxAttempts
	if own := l.rule.Pauses; len(own) > 0 {
		pause, most = own[min(j.m.Attempts, len(own)-1)], math.MaxInt
	}
	var de *message.DeliveryError
	if errors.As(err, &de) {
		pause = max(pause, de.RetryAfter)
	}
	out.NextAt = now.Add(pause)
	switch {
	case err == nil:
		out.State = outbox.Sent
		d.Sent.Add(1)
	case message.IsPermanent(err), out.Attempt >= most, l.late(j.m, out.NextAt):
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
		out.State = outbox.Queued
		d.Retried.Add(1)
		d.o.Log.Warn("message will be retried", "id", j.m.ID, "channel", j.m.Channel, "attempts", out.Attempt, "err", err)
	}
	return out, got
}

// ripe is how long the result of a delivery may wait for others to be batched. No caller waits for it. The user's
// answer to the message arrives soon, and would otherwise wait for a separate commit.
const ripe = 50 * time.Millisecond

// settle records the results of deliveries in batches. After a crash the unrecorded ones are sent once more, with the
// same keys.
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
			// The leases expire and these are sent once more, with the same keys.
			d.o.Log.Warn("the results of deliveries could not be stored", "count", len(ws)-1, "err", err)
		}
		cancel()
	}
}

// poll claims the due messages: retries, and messages of other nodes.
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
		for _, l := range d.lanes {
			l.sweep(now)
		}
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

// Unseal decrypts the payload of a message.
func Unseal(open func(sealed, ad []byte) ([]byte, error), m outbox.Message) (r message.Rendered, err error) {
	plain, err := open(m.Payload, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
	if err != nil {
		return r, err
	}
	return r, r.UnmarshalBinary(plain)
}

// Local is the sender of development mode: a message in the outbox is delivered.
type Local struct{}

func (Local) Send(context.Context, string, message.Rendered) error { return nil }
