package app

import (
	"context"
	"errors"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/change"
	"castellan/domain/kit/job"
	"castellan/http/edge"
	"castellan/http/rest"
)

// part is everything that one slice adds to the program. A slice is declared once, as an argument of join, in the file
// of its area (account.go, firewall.go …); unused fields are left out.
type part struct {
	groups    []rest.Group       // its endpoints; http/api.go lists them
	actions   []challenge.Action // executed when a challenge is complete
	snapshots []snapshot         // cached rows that any node may change
	tasks     []task             // its periodic work on every node
	kinds     []job.Kind         // its background jobs, each executed by one node at a time
	schedules []job.Schedule     // schedules that start such jobs
	files     []blob.Owner       // the files that its rows name; other files of its areas are removed
	loops     []loop             // its work with its own timing
	purge     func(context.Context, expiry) error
	observe   func(edge.Answered) // called for every answered request; must not block
	metrics   func(*metrics.Registry)
}

// snapshot is a copy of rows. It is loaded before the node serves and after a gap of the change feed, and is updated by
// the notes of its topic.
type snapshot struct {
	topic  change.Topic
	load   func(context.Context) error // nil: another topic of the same copy loads it
	follow func(ctx context.Context, keys ...string) error
}

// copies is the in-memory copy of a slice's rows.
type copies interface {
	Reload(context.Context) error
	Follow(ctx context.Context, keys ...string) error
}

// copyOf returns the snapshot of a slice that follows a topic.
func copyOf(c copies, t change.Topic) snapshot { return snapshot{t, c.Reload, c.Follow} }

// each applies one key after the other.
func each(take func(context.Context, string) error) func(context.Context, ...string) error {
	return func(ctx context.Context, keys ...string) error {
		for _, key := range keys {
			if err := take(ctx, key); err != nil {
				return err
			}
		}
		return nil
	}
}

// task is work that runs every period while the node serves. A failed run is logged with the complaint.
type task struct {
	every     time.Duration
	complaint string
	do        func(context.Context) error
}

// loop is work that runs while the node serves, until its context ends. It reports errors, which are logged with the
// complaint.
type loop struct {
	complaint string
	run       func(ctx context.Context, report func(error))
}

// taskTime bounds one run of a task.
const taskTime = 30 * time.Second

// expiry gives a purge the age of expired rows. No valid token can refer to an event before unreachable.
type expiry struct{ now, unreachable time.Time }

// after purges the rows whose time ended longer ago than a while.
func after(while time.Duration, purge func(context.Context, time.Time) error) func(context.Context, expiry) error {
	return func(ctx context.Context, old expiry) error { return purge(ctx, old.now.Add(-while)) }
}

// join adds a part to the program. It is called while the node is built.
func (s *service) join(p part) {
	s.groups = append(s.groups, p.groups...)
	for _, a := range p.actions {
		s.actions.Register(a)
	}
	for _, c := range p.snapshots {
		if c.load != nil {
			s.loads = append(s.loads, c.load)
		}
		s.feed.On(c.topic, c.follow)
	}
	s.tasks = append(s.tasks, p.tasks...)
	for _, k := range p.kinds {
		s.kinds[k.Name] = k
	}
	s.schedules = append(s.schedules, p.schedules...)
	s.owners = append(s.owners, p.files...)
	s.loops = append(s.loops, p.loops...)
	if p.purge != nil {
		s.purges = append(s.purges, p.purge)
	}
	if p.observe != nil {
		s.observers = append(s.observers, p.observe)
	}
	if p.metrics != nil {
		p.metrics(s.metrics)
	}
}

// load fills every snapshot, and stops at the first error.
func (s *service) load(ctx context.Context) error {
	for _, load := range s.loads {
		if err := load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// purge removes the expired rows.
func (s *service) purge(ctx context.Context) error {
	now := time.Now()
	longest, err := s.TokenLife(ctx, s.cfg)
	if err != nil {
		return err
	}
	old := expiry{now: now, unreachable: now.Add(-longest - time.Hour)} // an hour later, because clocks differ
	for _, purge := range s.purges {
		err = errors.Join(err, purge(ctx, old))
	}
	return err
}

// start begins the background work.
func (s *service) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.dispatch.Start()
	for _, l := range s.loops {
		s.background.Go(func() { l.run(ctx, func(err error) { s.log.Warn(l.complaint, "err", err) }) })
	}
	for _, t := range s.tasks {
		s.background.Go(func() { s.repeat(ctx, t) })
	}
}

type taskKey struct{}

// InTask reports whether a statement of Options.Trace belongs to a task that the service repeats, and to no request.
func InTask(ctx context.Context) bool { return ctx.Value(taskKey{}) != nil }

// repeat runs a task every period until ctx ends.
func (s *service) repeat(ctx context.Context, t task) {
	ctx = context.WithValue(ctx, taskKey{}, true)
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		bound, cancel := context.WithTimeout(ctx, taskTime)
		if err := t.do(bound); err != nil && ctx.Err() == nil {
			s.log.Warn(t.complaint, "err", err)
		}
		cancel()
	}
}

// observe passes an answered request to every part.
func (s *service) observe(_ context.Context, a edge.Answered) {
	for _, o := range s.observers {
		o(a)
	}
}

// groups lists groups of endpoints.
func groups(all ...rest.Group) []rest.Group { return all }
