package rate

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
)

// Provider tells the rates of this moment. It is safe for concurrent use.
type Provider interface {
	// Fetch returns the rates without their instant, and how many it left out
	// because they are no rates.
	Fetch(ctx context.Context) (quotes []Quote, leftOut int, err error)
}

// Arrived is the write of rates that a source told, as Store.Add keeps them.
type Arrived struct {
	Source string
	Quotes []Quote
}

func (Arrived) Table() string { return "exchange_rate" }

// FetchKind is the kind of the jobs that fetch rates.
const FetchKind = "fetch-rates"

// Fetching is the job that asks a provider once for every slot, and its schedule. A
// rate holds from the beginning of its slot, so that a job that runs again stores
// nothing twice.
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
