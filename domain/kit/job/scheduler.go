package job

import (
	"context"
	"errors"
	"slices"

	"castellan/domain/kit/audit"
)

// Scheduler starts the jobs of schedules. Every node has one, and all try every slot: the unique key of the job
// decides. One goroutine calls Tick.
type Scheduler struct {
	Service   *Service
	Schedules []Schedule
	tried     map[string]string // the newest slot that is settled, by kind
}

// Tick starts the jobs that are due. It costs nothing unless a slot begins, and one read if another node was faster.
// The next call retries failures.
func (s *Scheduler) Tick(ctx context.Context) (err error) {
	if s.tried == nil {
		s.tried = map[string]string{}
	}
	for _, schedule := range s.Schedules {
		err = errors.Join(err, s.try(ctx, schedule))
	}
	return err
}

func (s *Scheduler) try(ctx context.Context, schedule Schedule) error {
	slots := schedule.Slots(s.Service.Changes.Now())
	newest := slots[len(slots)-1]
	if s.tried[schedule.Kind] >= newest { // after the clock was set back nothing is retried
		return nil
	}
	started, err := s.Service.Store.Started(ctx, schedule.Kind, slots)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if slices.Contains(started, slot) {
			continue
		}
		r := Request{Kind: schedule.Kind, Key: slot}
		if _, _, err := s.Service.Start(ctx, audit.By{UserID: ScheduleActor}, r); err != nil {
			return err
		}
	}
	s.tried[schedule.Kind] = newest
	return nil
}
