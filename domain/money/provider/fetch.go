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
)

// FetchKind is the kind of the jobs that read accounts.
const FetchKind = "fetch-balances"

// Sources are those that the settings name, by provider and account; of a source
// that tells its accounts, by the provider alone.
type Sources map[Name]Source

// Name names a source. Account is "" for one that names its accounts itself.
type Name struct{ Provider, Account string }

// String is the name for a log.
func (n Name) String() string { return strings.TrimSuffix(n.Provider+"/"+n.Account, "/") }

// Watch is told of every reading: err is nil where it succeeded. It must not block.
type Watch func(n Name, slot time.Time, leftOut int, err error)

// round is where a job stands: which sources are left, and which failed and are
// asked again.
type round struct {
	Number      int
	Left, Again []string
}

// pauses are those before a source that failed is asked again. All of them end
// long before the next slot.
var pauses = []time.Duration{10 * time.Second, 60 * time.Second}

// Fetching is the job that reads all sources once for every slot, and its schedule.
// A source that fails never stops the others: it is asked again when all others
// were asked, and then left to the next slot.
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
			j.Skipped++ // of the settings of another node
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
				j = j.Fail(text, fault.New(fault.Unavailable, "the provider did not tell its balances"))
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

// arrived makes a snapshot of each account. Of an asset that is told twice the last
// one holds, and what is empty is not kept: exchanges tell every asset that they
// know.
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
		slices.SortFunc(w.Balances, func(a, b Balance) int { return cmp.Compare(a.Asset, b.Asset) })
		writes = append(writes, w)
	}
	return writes
}
