package app

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/cmd/app/metrics"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/outbound/callback"
	"castellan/outbound/dispatch"
	"castellan/outbound/push"
	"castellan/persistence/delivery"
)

// outboxLife is how long delivered messages are kept.
const outboxLife = 48 * time.Hour

// delivery builds the dispatcher of the outbox and its channels.
func (s *service) delivery() error {
	senders, err := adapters.Senders(s.cfg, s.o.Senders, s.Ring.VAPIDs)
	if err != nil {
		return err
	}
	if senders[message.Callback] == nil {
		senders[message.Callback] = callback.New(s.Ring.Signer, time.Now)
	}
	s.senders = senders
	store, c := delivery.NewOutbox(s.DB), s.cfg.Outbox
	s.dispatch = dispatch.New(dispatch.Options{Store: store, Commit: s.commit, Open: s.Ring.Open, Senders: senders,
		Keep: s.cfg.Dev, Workers: c.Workers, Rules: deliveryRules(c.Workers),
		Lease: c.Lease, RetryMin: c.RetryMin, RetryMax: c.RetryMax,
		MaxAttempts: c.MaxAttempts, Now: time.Now, Log: s.log, Gone: s.stopWakeups})
	waiting := &backlog{}
	s.join(part{
		tasks: []task{{5 * time.Second, "the outbox could not be counted",
			func(ctx context.Context) error { return waiting.look(ctx, store) }}},
		purge:   after(outboxLife, store.Purge),
		metrics: func(m *metrics.Registry) { s.deliveryMetrics(m, waiting) },
	})
	return nil
}

// deliveryRules returns how the messages of a channel share its attempts (D-EXT-06). Users choose the destinations of
// wake-ups, so a host that has not proved to be prompt gets one attempt at a time. Mail uses one relay, which may wait
// for the server of a domain: such a domain gets half of the workers, a prompt one all of them. SMS use one gateway.
func deliveryRules(workers int) map[message.Channel]dispatch.Rule {
	return map[message.Channel]dispatch.Rule{
		message.Push: {Slots: max(64, workers), Host: push.Host, Most: max(32, workers/2), Slow: 1,
			Slows: max(32, workers/2), RestAfter: 3, Rest: 5 * time.Minute, HalfLife: true},
		message.MAIL: {Host: mailDomain, Most: workers, Slow: max(1, workers/2)},
		message.Callback: {Host: callback.Host, Most: max(8, workers), Slow: 1, Slows: max(4, workers/2),
			Slots: max(16, workers), Pauses: callback.Pauses},
	}
}

func mailDomain(to string) string { return strings.ToLower(to[strings.LastIndexByte(to, '@')+1:]) }

// stopWakeups stops the wake-ups of a device that is permanently unreachable.
func (s *service) stopWakeups(ctx context.Context, m outbox.Message, r message.Rendered) {
	if r.Channel != message.Push {
		return
	}
	if err := s.devices.Gone(ctx, m.UserID, r.To); err != nil {
		s.log.Warn("an expired push target could not be removed", "err", err)
	}
}

// backlog is the size of the outbox at the last check.
type backlog struct{ queued, oldest atomic.Int64 }

func (b *backlog) look(ctx context.Context, store delivery.Outbox) error {
	queued, oldest, err := store.Backlog(ctx)
	if err != nil {
		return err
	}
	b.queued.Store(int64(queued))
	if queued == 0 {
		b.oldest.Store(0)
	} else {
		b.oldest.Store(oldest.UnixMilli())
	}
	return nil
}

// age returns the age of the oldest message in seconds, 0 if there is none.
func (b *backlog) age(now time.Time) float64 {
	oldest := b.oldest.Load()
	if oldest == 0 {
		return 0
	}
	return max(0, now.Sub(time.UnixMilli(oldest)).Seconds())
}

func (s *service) deliveryMetrics(m *metrics.Registry, b *backlog) {
	m.Counter("castellan_outbox_sent_total", "Messages delivered.", s.dispatch.Sent.Load)
	m.Counter("castellan_outbox_failed_total", "Messages given up.", s.dispatch.Failed.Load)
	m.Counter("castellan_outbox_gone_total", "Messages given up because their destination no longer exists.",
		s.dispatch.Gone.Load)
	m.Counter("castellan_outbox_retried_total", "Deliveries to be retried.", s.dispatch.Retried.Load)
	m.Counter("castellan_outbox_discarded_total", "Messages not sent: over a limit, or without a recipient.",
		s.commit.Discarded.Load)
	m.Counter("castellan_outbox_rested_total", "Wake-ups given up because their host is paused.",
		s.dispatch.Rested.Load)
	m.Gauge("castellan_outbox_waiting", "Messages queued on this node.",
		func() float64 { waiting, _, _ := s.dispatch.State(); return float64(waiting) })
	m.Gauge("castellan_outbox_under_way", "Messages being sent by this node.",
		func() float64 { _, underWay, _ := s.dispatch.State(); return float64(underWay) })
	m.Gauge("castellan_outbox_resting",
		"Hosts and users that this node has paused because their wake-ups timed out.",
		func() float64 { _, _, resting := s.dispatch.State(); return float64(resting) })
	m.Gauge("castellan_outbox_queued", "Undelivered messages in the database, of all nodes.",
		func() float64 { return float64(b.queued.Load()) })
	m.Gauge("castellan_outbox_oldest_age_seconds", "Age of the oldest undelivered message, of all nodes.",
		func() float64 { return b.age(time.Now()) })
}
