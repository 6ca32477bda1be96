package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/sorting"
)

// FetchKind is the kind of job that reads accounts.
const FetchKind = "fetch-balances"

// Sources are the sources in the settings, by provider and account; a source that lists its accounts itself has only
// the provider.
type Sources map[Name]Source

// Name identifies a source. Account is "" for a source that lists its accounts itself.
type Name struct{ Provider, Account string }

// String returns the name for the log.
func (n Name) String() string { return strings.TrimSuffix(n.Provider+"/"+n.Account, "/") }

// Watch is called after every read: err is nil if it succeeded. It must not block.
type Watch func(n Name, slot time.Time, leftOut int, err error)

// round is the state of a job: the remaining sources, and the failed ones to retry.
type round struct {
	Number      int
	Left, Again []string
}

// pauses are the pauses before a failed source is retried. All end long before the next slot.
var pauses = []time.Duration{10 * time.Second, 60 * time.Second}

// Fetching returns the job that reads all sources once per slot, and its schedule. A failed source never stops the
// others: it is retried after all others were read, and then left to the next slot.
func Fetching(sources Sources, watch Watch) (job.Kind, job.Schedule) {
	names := map[string]Name{}
	for n := range sources {
		names[n.String()] = n
	}
	step := func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		slot, err := j.Slot()
		if err != nil {
			return j, nil, err
		}
		var at round
		if j.Cursor == "" {
			for text := range names {
				at.Left = append(at.Left, text)
			}
			slices.Sort(at.Left)
			j.Total = int64(len(at.Left))
		} else if err := json.Unmarshal([]byte(j.Cursor), &at); err != nil {
			return j, nil, fmt.Errorf("read the cursor of a job: %w", err)
		}
		if len(at.Left) == 0 {
			return j.Finish(""), nil, nil
		}
		text := at.Left[0]
		at.Left = at.Left[1:]
		var writes []commit.Write
		if n, known := names[text]; !known {
			j.Skipped++ // named in the settings of another node only
		} else if accounts, err := sources[n].Fetch(ctx); ctx.Err() != nil {
			return j, nil, ctx.Err()
		} else {
			writes = arrived(n, slot, accounts)
			watch(n, slot, leftOut(accounts), err)
			switch {
			case err == nil:
				j.Done++
			case at.Number < len(pauses):
				at.Again = append(at.Again, text)
			default:
				j = j.Fail(text, fault.New(fault.Unavailable, "the provider did not return its balances"))
			}
		}
		if len(at.Left) == 0 && len(at.Again) > 0 {
			j.Rest = pauses[at.Number]
			at = round{Number: at.Number + 1, Left: at.Again}
		}
		if len(at.Left) == 0 {
			return j.Finish(""), writes, nil
		}
		cursor, err := json.Marshal(at)
		j.Cursor = string(cursor)
		return j, writes, err
	}
	return job.Kind{Name: FetchKind, Step: step}, job.Schedule{Kind: FetchKind, Every: Every}
}

func leftOut(accounts []Account) (n int) {
	for _, a := range accounts {
		n += a.LeftOut
	}
	return n
}

// arrived makes a snapshot of each account. If an asset is listed twice the last entry counts. Empty balances are
// dropped, because exchanges list every asset.
func arrived(n Name, slot time.Time, accounts []Account) (writes []commit.Write) {
	for _, a := range accounts {
		told := map[string]Balance{}
		for _, b := range a.Balances {
			told[b.Asset] = b
		}
		w := Arrived{Provider: n.Provider, Account: cmp.Or(n.Account, a.Name), At: slot}
		for _, b := range told {
			if !b.Empty() {
				w.Balances = append(w.Balances, b)
			}
		}
		sorting.Func(w.Balances, func(a, b Balance) int { return cmp.Compare(a.Asset, b.Asset) })
		writes = append(writes, w)
	}
	return writes
}
