package balance

import (
	"context"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// SumKind is the kind of job that sums days.
const SumKind = "sum-days"

// sumAfter is how long after its end a day is summed: by then the ledger has committed every movement that began in it.
const sumAfter = time.Hour

// Summing returns the job that sums past days, the oldest first, and its schedule. It continues after the last summed
// day, so it can be repeated, interrupted, and run twice at once.
func Summing(s Store, now func() time.Time) (job.Kind, job.Schedule) {
	step := func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		spans, err := s.Spans(ctx)
		if err != nil {
			return j, nil, err
		}
		day, ok, err := s.Next(ctx, Start(lastSummedDay(spans)+1))
		if err != nil {
			return j, nil, err
		}
		if !ok || day >= DayOf(now().Add(-sumAfter)) {
			return j.Finish(""), nil, nil
		}
		days, err := summed(ctx, s, day)
		if err != nil {
			return j, nil, err
		}
		j.Done++
		j.Total = j.Done
		return j, []commit.Write{Summed{days}}, nil
	}
	return job.Kind{Name: SumKind, Step: step}, job.Schedule{Kind: SumKind, Every: time.Hour}
}

func summed(ctx context.Context, s Store, day int64) ([]Day, error) {
	days, err := s.Moved(ctx, Start(day), Start(day+1))
	if err != nil {
		return nil, err
	}
	before, err := s.Before(ctx, day)
	if err != nil {
		return nil, err
	}
	at := byAsset(before)
	for i, moved := range days {
		days[i] = at[moved.Asset].grown(moved)
	}
	return days, nil
}

func byAsset(days []Day) map[int64]Day {
	at := map[int64]Day{}
	for _, d := range days {
		at[d.Asset] = d
	}
	return at
}

// lastSummedDay returns the last summed day; the day before 1970 if there is none.
func lastSummedDay(spans []Span) int64 {
	day := int64(-1)
	for _, s := range spans {
		day = max(day, s.Last)
	}
	return day
}
