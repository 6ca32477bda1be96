package balance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/balance"
)

// books is a balance.Store over movements in memory.
type books struct {
	balance.Store
	moves []move
	days  []balance.Day // the summed days
	asked [][2]int64    // requested ranges of Days
}

// move is an incoming amount of whole units; negative amounts are outgoing.
type move struct{ day, asset, n int64 }

var errAway = errors.New("away")

func (b *books) Moved(_ context.Context, from, to time.Time) (out []balance.Day, _ error) {
	for day := balance.DayOf(from); balance.Start(day).Before(to); day++ {
		sums := map[int64]*balance.Day{}
		for _, m := range b.moves {
			if m.day != day {
				continue
			}
			if sums[m.asset] == nil {
				sums[m.asset] = &balance.Day{Day: day, Asset: m.asset}
			}
			side, n := &sums[m.asset].In, m.n
			if n < 0 {
				side, n = &sums[m.asset].Out, -n
			}
			*side = side.Add(units(n))
		}
		for _, d := range sums {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b balance.Day) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Asset, b.Asset))
	})
	return out, nil
}

func units(n int64) amount.Sum { return amount.Must(fmt.Sprint(n)).Sum() }

func (b *books) Next(_ context.Context, from time.Time) (day int64, ok bool, err error) {
	for _, m := range b.moves {
		if m.day >= balance.DayOf(from) && (!ok || m.day < day) {
			day, ok = m.day, true
		}
	}
	return day, ok, nil
}

func (b *books) Spans(context.Context) (out []balance.Span, _ error) {
	for _, d := range b.days {
		i := slices.IndexFunc(out, func(s balance.Span) bool { return s.Asset == d.Asset })
		if i < 0 {
			i, out = len(out), append(out, balance.Span{Asset: d.Asset, First: d.Day, Last: d.Day})
		}
		out[i].First, out[i].Last = min(out[i].First, d.Day), max(out[i].Last, d.Day)
	}
	return out, nil
}

func (b *books) Days(_ context.Context, first, last int64, assets []int64) (out []balance.Day, _ error) {
	b.asked = append(b.asked, [2]int64{first, last})
	for _, d := range b.days {
		if d.Day >= first && d.Day <= last && (assets == nil || slices.Contains(assets, d.Asset)) {
			out = append(out, d)
		}
	}
	return out, nil
}

func (b *books) Before(_ context.Context, day int64) (out []balance.Day, _ error) {
	at := map[int64]balance.Day{}
	for _, d := range b.days {
		if d.Day < day && (at[d.Asset].Day <= d.Day) {
			at[d.Asset] = d
		}
	}
	return slices.Collect(maps.Values(at)), nil
}

const today = 1000

var now = balance.Start(today).Add(13 * time.Hour)

// codes are the currencies of assets: 1 and 2 are one currency on two networks.
var codes = map[int64]string{1: "AAA", 2: "AAA", 3: "BBB", 4: "CCC"}

func (b *books) service() *balance.Service {
	return &balance.Service{Store: b, Now: func() time.Time { return now }, Code: func(asset int64) (string, error) {
		if codes[asset] == "" {
			return "", errAway
		}
		return codes[asset], nil
	}}
}

// sum runs the summing job until it is done, and returns the summed days.
func (b *books) sum(t *testing.T, now time.Time) (days []int64) {
	t.Helper()
	kind, schedule := balance.Summing(b, func() time.Time { return now })
	if kind.Name != "sum-days" || schedule.Kind != kind.Name || schedule.Every != time.Hour {
		t.Errorf("%+v, %+v", kind, schedule)
	}
	for j := (job.Job{}); ; {
		next, writes, err := kind.Step(t.Context(), j)
		storetest.Must(t, err)
		if next.State.Over() {
			if next.Done != int64(len(days)) || next.Total != next.Done || len(writes) != 0 {
				t.Errorf("%+v after %v, %d writes", next, days, len(writes))
			}
			return days
		}
		for _, w := range writes {
			all := w.(balance.Summed).Days
			days, b.days = append(days, all[0].Day), append(b.days, all...)
		}
		j = next
	}
}

// plain returns the positions by the simplest calculation over the movements, newest day first.
func (b *books) plain(r balance.Range) (out []string) {
	starts := map[string]int64{}
	for _, m := range b.moves {
		if code := codes[m.asset]; m.day <= min(r.Last, today) {
			if start, ok := starts[code]; !ok || m.day < start {
				starts[code] = m.day
			}
		}
	}
	for day := min(r.Last, today); day >= max(r.First, 0); day-- {
		for _, code := range []string{"AAA", "BBB", "CCC"} {
			start, ok := starts[code]
			if !ok || start > day || r.Symbol != "" && !strings.EqualFold(code, r.Symbol) {
				continue
			}
			var in, gone, has int64
			for _, m := range b.moves {
				if codes[m.asset] != code || m.day > day {
					continue
				}
				if has += m.n; m.day == day && m.n > 0 {
					in += m.n
				} else if m.day == day {
					gone -= m.n
				}
			}
			out = append(out, fmt.Sprint(day, code, in, gone, in-gone, has))
		}
	}
	return out
}

func shown(all []balance.Position) (out []string) {
	for _, p := range all {
		out = append(out, fmt.Sprint(p.Day, p.Symbol, p.Deposit, p.Withdrawal, p.Net, p.Balance))
	}
	return out
}

// Positions of random movements equal the simplest calculation, whichever days are summed, page by page.
func TestPositionsMatchASimpleCalculation(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		b, has := &books{}, map[int64]int64{}
		for day := int64(today - 5 - r.IntN(100)); day <= today; day += 1 + int64(r.IntN(4)*r.IntN(9)) {
			for range r.IntN(4) {
				m := move{day, int64(1 + r.IntN(4)), int64(1 + r.IntN(9))}
				if r.IntN(3) == 0 && has[m.asset] > 0 {
					m.n = -1 - r.Int64N(has[m.asset])
				}
				has[m.asset] += m.n
				b.moves = append(b.moves, m)
			}
		}
		if seed%3 > 0 {
			b.sum(t, now.Add(-time.Duration(r.IntN(60))*24*time.Hour))
		}
		q := balance.Range{First: today - int64(r.IntN(120)), Last: today + 2 - int64(r.IntN(50)),
			Symbol: []string{"", "", "aaa", "BBB", "x"}[r.IntN(5)]}
		want := b.plain(q)
		for _, limit := range []int{0, 1, 7} {
			var got []string
			for p := (page.Query[balance.Place]{Limit: limit}); ; {
				out := storetest.Value(b.service().Positions(t.Context(), q, p))(t)
				if out.Total != len(want) || limit > 0 && len(out.Records) > limit {
					t.Fatalf("seed %d: %d of %d, want %d", seed, len(out.Records), out.Total, len(want))
				}
				if got = append(got, shown(out.Records)...); !out.More {
					break
				}
				p.After = new(out.Records[len(out.Records)-1].Mark())
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v, limit %d:\n got %v\nwant %v", seed, q, limit, got, want)
			}
		}
	}
}

// Days are read in windows of a month, up to the last summed day.
func TestWindows(t *testing.T) {
	b := &books{moves: []move{{today - 99, 1, 5}, {today, 1, 1}}}
	b.sum(t, now)
	got, err := b.service().Positions(t.Context(), balance.Range{First: 0, Last: today - 10}, page.Query[balance.Place]{})
	storetest.Must(t, err)
	if len(got.Records) != 90 || len(b.asked) != 1 || b.asked[0] != [2]int64{today - 99, today - 99} {
		t.Errorf("%d positions, asked for %v", len(got.Records), b.asked)
	}
	got, err = b.service().Positions(t.Context(), balance.Range{Last: today}, page.Query[balance.Place]{Limit: 3})
	storetest.Must(t, err)
	if len(got.Records) != 3 || !got.More || got.Total != 100 || len(b.asked) != 1 {
		t.Errorf("%d of %d, asked for %v", len(got.Records), got.Total, b.asked)
	}
}

// A movement of an unknown currency is an error, whether its day is summed or not.
func TestPositionsOfAnUnknownCurrency(t *testing.T) {
	for _, b := range []*books{{moves: []move{{today, 9, 1}}}, {days: []balance.Day{{Day: 5, Asset: 9}}}} {
		got, err := b.service().Positions(t.Context(), balance.Range{Last: today}, page.Query[balance.Place]{})
		if !errors.Is(err, errAway) || len(got.Records) > 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// A day is summed once, an hour after its end, the oldest first.
func TestSumming(t *testing.T) {
	b := &books{moves: []move{{5, 1, 7}, {5, 3, 2}, {8, 1, -3}, {9, 3, 1}}}
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{balance.Start(6).Add(time.Hour - time.Millisecond), "[]"}, {balance.Start(6).Add(time.Hour), "[5]"},
		{balance.Start(6).Add(time.Hour), "[]"}, {balance.Start(10).Add(time.Hour - time.Millisecond), "[8]"},
		{balance.Start(30), "[9]"},
	} {
		storetest.Equal(t, fmt.Sprint(b.sum(t, c.at)), c.want, c.at)
	}
	var got []string
	for _, d := range b.days {
		got = append(got, fmt.Sprint(d.Day, d.Asset, d.In, d.Out, d.Posted))
	}
	if want := []string{"5 1 7 0 7", "5 3 2 0 2", "8 1 0 3 4", "9 3 1 0 3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The sums of a day are exact beyond the largest amount, in a position and in a summed day.
func TestSumsBeyondAnAmount(t *testing.T) {
	most := units(999_999_999_999_999_999)
	large := &books{days: []balance.Day{{Day: 5, Asset: 1, In: most, Posted: most}, {Day: 5, Asset: 2, In: most,
		Posted: most}}, moves: []move{{7, 1, 1}}}
	got, err := large.service().Positions(t.Context(), balance.Range{First: 5, Last: 5}, page.Query[balance.Place]{})
	const twice = "1999999999999999998"
	if want := "[{5 AAA " + twice + " 0 " + twice + " " + twice + "}]"; err != nil || fmt.Sprint(got.Records) != want {
		t.Errorf("%v, %v, want %s", got.Records, err, want)
	}
	kind, _ := balance.Summing(large, func() time.Time { return now })
	_, writes, err := kind.Step(t.Context(), job.Job{})
	if want := "[{[{7 1 1 0 1000000000000000000}]}]"; err != nil || fmt.Sprint(writes) != want {
		t.Errorf("%v, %v, want %s", writes, err, want)
	}
}

// Days are UTC days, also before 1970.
func TestDayOf(t *testing.T) {
	for text, want := range map[string]int64{"1970-01-01T00:00:00Z": 0, "1970-01-01T23:59:59.999Z": 0,
		"1970-01-02T00:00:00Z": 1, "1969-12-31T23:59:59.999Z": -1, "1969-12-31T00:00:00Z": -1, "1969-12-30T23:59:59Z": -2,
		"1970-01-02T02:00:00+03:00": 0} {
		at := storetest.Value(time.Parse(time.RFC3339Nano, text))(t)
		if got := balance.DayOf(at); got != want || balance.Start(got).After(at) || !balance.Start(got+1).After(at) {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
