package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/outbound/dispatch"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// gateway simulates the external gateway: it gives the configured answers, then accepts.
type gateway struct {
	mu      sync.Mutex
	answers []error
	got     []string // key and code
	at      []time.Time
}

func (g *gateway) Send(_ context.Context, key string, m message.Rendered) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got, g.at = append(g.got, key+" "+m.Code), append(g.at, time.Now())
	if len(g.answers) == 0 {
		return nil
	}
	err := g.answers[0]
	g.answers = g.answers[1:]
	return err
}

func (g *gateway) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.got...)
}

type world struct {
	t     *testing.T
	db    *persistence.DB
	store delivery.Outbox
	ring  *keyring.Ring
	out   *gateway
	rules map[message.Channel]dispatch.Rule
	gone  []string // message and destination
}

func open(t *testing.T) *world {
	db := persistencetest.SQLite(t)
	return &world{t: t, db: db, store: delivery.NewOutbox(db), ring: keyringtest.Ring(t, time.Now), out: &gateway{}}
}

func (w *world) dispatcher(keep bool) *dispatch.Dispatcher {
	return dispatch.New(
		dispatch.Options{
			Store:       w.store,
			Commit:      w.db,
			Open:        w.ring.Open,
			Senders:     map[message.Channel]message.Sender{message.SMS: w.out},
			Keep:        keep,
			Rules:       w.rules,
			Workers:     2,
			Lease:       30 * time.Second,
			RetryMin:    time.Second,
			RetryMax:    10 * time.Second,
			MaxAttempts: 4,
			Now:         time.Now,
			Log:         slog.New(slog.DiscardHandler),
			Gone: func(_ context.Context, m outbox.Message, r message.Rendered) {
				w.gone = append(w.gone, m.ID+" "+r.To)
			},
		},
	)
}

// add commits a message as a challenge does, leased to this node.
func (w *world) add(id string, lease time.Duration, life time.Duration) (outbox.Message, message.Rendered) {
	w.t.Helper()
	r := message.Rendered{Channel: message.SMS, To: "+905320000001", Text: "code 123456", Code: "123456"}
	plain := storetest.Value(r.AppendBinary(nil))(w.t)
	now := time.Now()
	m := outbox.Message{
		ID:          id,
		ChallengeID: "c",
		MethodID:    id,
		Channel:     message.SMS,
		Destination: []byte("d"),
		CreatedAt:   now,
		ExpiresAt:   now.Add(life),
		LeaseUntil:  now.Add(lease),
		Payload:     w.ring.Seal(plain, challenge.PayloadData("c", id, 0)),
	}
	storetest.Must(w.t, w.db.Commit(w.t.Context(), outbox.Add{Message: m}))
	return m, r
}

func (w *world) payloads() int {
	w.t.Helper()
	ms := storetest.Value(w.store.Recent(w.t.Context(), nil, 100))(w.t)
	return len(ms)
}

func virtual(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		test(t, w)
		w.db.Close()
	})
}

func TestDeliversAtOnceAndErases(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		d := w.dispatcher(false)
		d.Start()
		d.Deliver(w.add("m1", 30*time.Second, time.Minute))
		time.Sleep(100 * time.Millisecond)
		if got := w.out.seen(); len(got) != 1 || got[0] != "m1 123456" {
			t.Fatalf("sent %v", got)
		}
		storetest.Equal(t, w.payloads(), 0, "payloads are left after delivery")
		time.Sleep(2 * time.Minute)
		storetest.Equal(t, len(w.out.seen()), 1, "sent again")
		d.Stop()
	})
}

func TestRetriesWithBackOffAndTheSameKey(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		busy := &message.DeliveryError{Err: errors.New("busy")}
		w.out.answers = []error{busy, &message.DeliveryError{Err: errors.New("later"), RetryAfter: 8 * time.Second}}
		d := w.dispatcher(false)
		d.Start()
		d.Deliver(w.add("m1", 30*time.Second, time.Minute))
		time.Sleep(30 * time.Second)
		got := w.out.seen()
		if len(got) != 3 || got[0] != got[2] {
			t.Fatalf("sent %v", got)
		}
		if first, second := w.out.at[1].Sub(w.out.at[0]), w.out.at[2].Sub(w.out.at[1]); first < time.Second ||
			first > 3*time.Second || second < 8*time.Second || second > 10*time.Second {
			t.Errorf("pauses of %v and %v, want 1 s of back-off and the 8 s asked for", first, second)
		}
		if d.Sent.Load() != 1 || d.Retried.Load() != 2 || w.payloads() != 0 {
			t.Errorf("%d sent, %d retried, %d payloads", d.Sent.Load(), d.Retried.Load(), w.payloads())
		}
		d.Stop()
	})
}

// A channel may have its own pauses. They replace the back-off and the bound of attempts until the message expires.
func TestRetriesAfterTheChannelsPauses(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.rules = map[message.Channel]dispatch.Rule{message.SMS: {Pauses: []time.Duration{5 * time.Second, time.Minute,
			time.Hour}}}
		for range 100 {
			w.out.answers = append(w.out.answers, &message.DeliveryError{Err: errors.New("away"), RetryAfter: time.Second})
		}
		d := w.dispatcher(false)
		d.Start()
		d.Deliver(w.add("m1", 30*time.Second, 10*time.Hour))
		time.Sleep(20 * time.Hour)
		d.Stop()
		if len(w.out.at) != 12 || d.Failed.Load() != 0 || w.payloads() != 0 {
			t.Fatalf("%d attempts, %d failed, %d payloads", len(w.out.at), d.Failed.Load(), w.payloads())
		}
		for i, want := range []time.Duration{5 * time.Second, time.Minute, time.Hour, time.Hour} {
			if got := w.out.at[i+1].Sub(w.out.at[i]); got < want || got > want+3*time.Second {
				t.Errorf("pause %d: %v, want %v", i, got, want)
			}
		}
	})
}

func TestGivesUp(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		w.out.answers = []error{&message.DeliveryError{Permanent: true, Err: errors.New("no such number")}}
		d := w.dispatcher(false)
		d.Start()
		d.Deliver(w.add("refused", 30*time.Second, time.Hour))
		time.Sleep(time.Minute)
		storetest.Equal(t, len(w.out.seen()), 1, "a permanent refusal was sent", "times")
		for range 10 {
			w.out.answers = append(w.out.answers, errors.New("unreachable"))
		}
		d.Deliver(w.add("unreachable", 30*time.Second, time.Hour))
		time.Sleep(5 * time.Minute)
		storetest.Equal(t, len(w.out.seen())-1, 4, "attempts, want 4")
		w.out.answers = []error{&message.DeliveryError{Permanent: true, Gone: true, Err: errors.New("unsubscribed")}}
		d.Deliver(w.add("gone", 30*time.Second, time.Hour))
		time.Sleep(time.Minute)
		if d.Failed.Load() != 3 || d.Gone.Load() != 1 || w.payloads() != 0 {
			t.Errorf("%d failed, %d gone, %d payloads", d.Failed.Load(), d.Gone.Load(), w.payloads())
		}
		d.Stop()
		storetest.Same(t, w.gone, []string{"gone +905320000001"})
	})
}

// An expired code is not sent.
func TestExpiredCodesAreNotSent(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		d := w.dispatcher(false)
		w.add("late", 0, 5*time.Second)
		time.Sleep(6 * time.Second)
		d.Start()
		time.Sleep(5 * time.Second)
		if got := w.out.seen(); len(got) != 0 || w.payloads() != 0 {
			t.Errorf("sent %v, %d payloads", got, w.payloads())
		}
		d.Stop()
	})
}

// Two nodes share the outbox. One takes over the messages of the other when their lease has expired, and nothing is
// sent twice while both live.
func TestAnotherNodeTakesOver(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		a, b := w.dispatcher(false), w.dispatcher(false)
		a.Start()
		b.Start()
		w.add("orphan", 30*time.Second, 5*time.Minute) // its node died before the delivery
		for i := range 20 {
			a.Deliver(w.add(fmt.Sprint("m", i), 30*time.Second, 5*time.Minute))
		}
		time.Sleep(29 * time.Second)
		storetest.Equal(t, len(w.out.seen()), 20, "sent before the lease lapsed")
		time.Sleep(3 * time.Second)
		storetest.Equal(t, len(w.out.seen()), 21, "sent, want the orphan too")
		time.Sleep(2 * time.Minute)
		storetest.Equal(t, len(w.out.seen()), 21, "sent in the end")
		a.Stop()
		b.Stop()
	})
}

func TestKeepLeavesPayloads(t *testing.T) {
	virtual(t, func(t *testing.T, w *world) {
		d := w.dispatcher(true)
		d.Start()
		d.Deliver(w.add("m1", 30*time.Second, time.Minute))
		time.Sleep(time.Second)
		ms, err := w.store.Recent(t.Context(), nil, 10)
		if err != nil || len(ms) != 1 || ms[0].State != outbox.Sent {
			t.Fatalf("%+v, %v", ms, err)
		}
		storetest.Equal(t, storetest.Value(dispatch.Unseal(w.ring.Open, ms[0]))(t).Code, "123456")
		d.Stop()
	})
}

func TestOffersWhatHasASender(t *testing.T) {
	d := dispatch.New(dispatch.Options{Senders: map[message.Channel]message.Sender{message.SMS: dispatch.Local{}}})
	if !d.Offers(message.SMS) || d.Offers(message.MAIL) {
		t.Error("a channel is offered without a sender, or not with one")
	}
}
