package rate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

type provider struct{ err error }

func (p provider) Fetch(context.Context) ([]rate.Quote, int, error) {
	return []rate.Quote{{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("41.5")}}, 2, p.err
}

// The rates of a slot have the time of its beginning, however late they are fetched; a failed provider fails the
// attempt.
func TestFetching(t *testing.T) {
	kind, schedule := rate.Fetching(provider{}, "rates.test", 5*time.Minute)
	if schedule.Kind != kind.Name || schedule.Every != 5*time.Minute {
		t.Errorf("scheduled as %+v", schedule)
	}
	slot := time.Date(2026, 1, 31, 10, 5, 0, 0, time.UTC)
	j := job.Job{Kind: kind.Name, Key: schedule.Slots(slot.Add(4 * time.Minute))[0], State: job.Running}
	next, writes, err := kind.Step(t.Context(), j)
	storetest.Must(t, err)
	if next.State != job.Done || next.Total != 3 || next.Done != 1 || next.Skipped != 2 || len(writes) != 1 {
		t.Errorf("%+v, %d writes", next, len(writes))
	}
	arrived := writes[0].(rate.Arrived)
	if q := arrived.Quotes[0]; arrived.Source != "rates.test" || !q.At.Equal(slot) || q.Rate.String() != "41.5" {
		t.Errorf("%+v", arrived)
	}
	away := errors.New("away")
	kind, _ = rate.Fetching(provider{away}, "rates.test", time.Minute)
	if _, writes, err := kind.Step(t.Context(), j); !errors.Is(err, away) || writes != nil {
		t.Errorf("%v, %v", writes, err)
	}
	j.Key = "no slot"
	if _, _, err := kind.Step(t.Context(), j); err == nil || errors.Is(err, away) {
		t.Errorf("a job of no slot: %v", err)
	}
}
