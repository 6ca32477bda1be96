package rate

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// Provider returns current rates. It is safe for concurrent use.
type Provider interface {
	// Fetch returns the rates without a time, and the number of entries left out as invalid rates.
	Fetch(ctx context.Context) (quotes []Quote, leftOut int, err error)
}

// Arrived writes rates from a source, as Store.Add does.
type Arrived struct {
	Source string
	Quotes []Quote
}

func (Arrived) Table() string { return "exchange_rate" }

// FetchKind is the kind of job that fetches rates.
const FetchKind = "fetch-rates"

// Fetching returns the job that calls a provider once per slot, and its schedule. A rate has the time of the beginning
// of its slot, so that a repeated job stores nothing twice.
func Fetching(p Provider, source string, every time.Duration) (job.Kind, job.Schedule) {
	step := func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		slot, err := j.Slot()
		if err != nil {
			return j, nil, err
		}
		quotes, leftOut, err := p.Fetch(ctx)
		if err != nil {
			return j, nil, fmt.Errorf("fetch rates: %w", err)
		}
		for i := range quotes {
			quotes[i].At = slot
		}
		j.Total, j.Done, j.Skipped = int64(len(quotes)+leftOut), int64(len(quotes)), int64(leftOut)
		return j.Finish(""), []commit.Write{Arrived{source, quotes}}, nil
	}
	return job.Kind{Name: FetchKind, Step: step}, job.Schedule{Kind: FetchKind, Every: every}
}
