package rate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

var today = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

func TestReadCSV(t *testing.T) {
	const text = "\ufeffdate,source,base,quote,rate\r\n2026-01-31,x,usd,TRY,41.7352\r\n" +
		"2026-01-31T10:00:00+03:00,\"a\nb\"\"\",EUR,USD, 1.1874 \n2026-02-01T00:00:00Z,,EUR,USD,1.2\n"
	quotes, err := rate.ReadCSV(strings.NewReader(text), today, func(int) {})
	var got []string
	for _, q := range quotes {
		got = append(got, fmt.Sprint(q.Base, q.Quote, " ", q.Rate, " ", q.At.Format(time.RFC3339)))
	}
	const want = "USDTRY 41.7352 2026-01-31T00:00:00Z, EURUSD 1.1874 2026-01-31T07:00:00Z, EURUSD 1.2 2026-02-01T00:00:00Z"
	storetest.Must(t, err)
	storetest.Equal(t, strings.Join(got, ", "), want)
}

func TestInvalidLines(t *testing.T) {
	const head = "base,quote,rate,date\n"
	const good = head + "USD,TRY,1,2026-01-31\n"
	for text, want := range map[string]string{
		"":                                      "line 1",
		"base,quote,rate\n":                     "line 1: a column date is missing",
		"USD,TRY,1,2026-01-31\n":                "line 1: a column base is missing",
		good + "USD,TRY,1\n":                    "line 3: has 3 fields, and the first line has 4",
		good + "USD,\"TRY,1,2026-01-31\n":       "line 3",
		good + "USD,TR\"Y,1,2026-01-31\n":       "line 3",
		good + "\n\nUSD,USD,1,2026-01-31\n":     "line 5: base and quote",
		good + "US D,TRY,1,2026-01-31\n":        "line 3: base and quote",
		good + ",TRY,1,2026-01-31\n":            "line 3: base and quote",
		good + "USD,TRY,0,2026-01-30\n":         "line 3: rate must be",
		good + "USD,TRY,\"1,5\",2026-01-30\n":   "line 3: rate must be",
		good + "USD,TRY,1e400,2026-01-30\n":     "line 3: rate must be",
		good + "USD,TRY,1,31.01.2026\n":         "line 3: date must be",
		good + "USD,TRY,1,2026-02-02\n":         "line 3: date is in the future",
		good + "usd,try,2,2026-01-31T00:00:00Z": "line 3: line 2 already has a rate of that pair and date",
		good + "=cmd|' /C calc'!A0,TRY,1,x\n":   "line 3: base and quote",
		good + "USD,TRY,1\x00,2026-01-30\n":     "line 3: rate must be",
		good + "USD,TRY,\xff,2026-01-30\n":      "line 3: rate must be",
	} {
		quotes, err := rate.ReadCSV(strings.NewReader(text), today, func(int) {})
		if err == nil || quotes != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, quotes, err, want)
		}
	}
}

// The length of a file is limited, and progress is reported.
func TestLargeFile(t *testing.T) {
	var text strings.Builder
	text.WriteString("base,quote,rate,date\n")
	for i := range 100_000 {
		fmt.Fprintf(&text, "USD,TRY,1,%s\n", today.Add(-time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	var told []int
	quotes, err := rate.ReadCSV(strings.NewReader(text.String()), today, func(n int) { told = append(told, n) })
	if err != nil || len(quotes) != 100_000 || len(told) != 10 || told[9] != 100_000 {
		t.Errorf("%d rates, %v, %v", len(quotes), told, err)
	}
	text.WriteString("USD,EUR,1,2026-01-01\n")
	_, err = rate.ReadCSV(strings.NewReader(text.String()), today, func(int) {})
	if err == nil || !strings.Contains(err.Error(), "line 100002: a file has at most 100000 rates") {
		t.Error(err)
	}
}

// FuzzReadCSV: an accepted file holds rates above zero between two currencies, none later than now.
func FuzzReadCSV(f *testing.F) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Add("base,quote,rate,date\nBTC,USD,1.5,2026-01-31\n")
	f.Add("\ufeffdate,rate,quote,base,x\n2026-01-31T10:00:00Z,0.1,TRY,USD,\"a\nb\"\n")
	f.Add("base,quote,rate,date\nBTC,BTC,-1,2999-01-01\n")
	f.Fuzz(func(t *testing.T, text string) {
		quotes, err := rate.ReadCSV(strings.NewReader(text), now, func(int) {})
		if err != nil {
			return
		}
		for _, q := range quotes {
			_, base := rate.Code(q.Base)
			_, quote := rate.Code(q.Quote)
			if !base || !quote || q.Base == q.Quote || q.At.After(now) {
				t.Fatalf("%q gives %+v", text, q)
			}
			if again, err := rate.Parse(q.Rate.String()); err != nil || again.String() != q.Rate.String() {
				t.Fatalf("%q gives the rate %s: %v", text, q.Rate, err)
			}
		}
	})
}

type provider struct{ err error }

func (p provider) Fetch(context.Context) ([]rate.Quote, int, error) {
	return []rate.Quote{{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("41.5")}}, 2, p.err
}

// The rates of a slot have the time of its beginning, however late they are fetched; a failed provider fails the
// attempt.
func TestFetching(t *testing.T) {
	kind, schedule := rate.Fetching(provider{}, "rates.test", 5*time.Minute)
	storetest.Equal(t, schedule.Kind, kind.Name, schedule)
	storetest.Equal(t, schedule.Every, 5*time.Minute, schedule)
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
