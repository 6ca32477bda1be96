package balance

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/page"
	"castellan/domain/kit/sorting"
)

// Service reports positions. It is safe for concurrent use.
type Service struct {
	Store Store
	// Code returns the code of the currency of an asset.
	Code func(asset int64) (string, error)
	Now  func() time.Time
}

// Position is the position of all users in a currency on a day, over all networks: incoming and outgoing
// amounts and the total at the end of the day.
type Position struct {
	Day                      int64
	Symbol                   string
	Deposit, Withdrawal, Net amount.Sum
	Balance                  amount.Sum
}

// Place is the position of an entry in the list: the newest day first, then by symbol.
type Place struct {
	Day    int64
	Symbol string
}

func (p Position) Mark() Place { return Place{p.Day, p.Symbol} }

// Range selects days, both ends included, and one currency by its code in any case; "": all.
type Range struct {
	First, Last int64
	Symbol      string
}

// window is how many days are read at once.
const window = 31

// open holds the data shared by all pages of a query: the first movement day of each currency, and the movements since
// the last summed day.
type open struct {
	codes  map[int64]string // of the selected assets
	starts map[string]int64 // by code
	moved  []Day            // of the selected assets, by day
	summed int64            // the last summed day
}

// Positions lists the position of every day from the first movement of a currency on, including days without a
// movement. Future days are not listed.
func (s *Service) Positions(ctx context.Context, r Range, p page.Query[Place]) (out page.Of[Position], err error) {
	r.Last = min(r.Last, DayOf(s.Now()))
	o, err := s.open(ctx, r)
	if err != nil {
		return out, err
	}
	first := r.Last + 1
	for _, start := range o.starts {
		start = max(start, r.First)
		first = min(first, start)
		out.Total += int(max(0, r.Last-start+1))
	}
	day := r.Last
	if p.After != nil {
		day = min(day, p.After.Day)
	}
	for ; day >= first && !out.More; day -= window {
		all, err := s.window(ctx, o, max(first, day-window+1), day)
		if err != nil {
			return out, err
		}
		for _, one := range all {
			if p.After != nil && order(one.Mark(), *p.After) <= 0 {
				continue
			}
			if out.More = p.Limit > 0 && len(out.Records) == p.Limit; out.More {
				break
			}
			out.Records = append(out.Records, one)
		}
	}
	return out, nil
}

func order(a, b Place) int { return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Symbol, b.Symbol)) }

func (s *Service) open(ctx context.Context, r Range) (open, error) {
	o := open{codes: map[int64]string{}, starts: map[string]int64{}}
	spans, err := s.Store.Spans(ctx)
	if err != nil {
		return o, err
	}
	begin := func(asset, day int64) (wanted bool, err error) {
		code, err := s.Code(asset)
		if wanted = r.Symbol == "" || strings.EqualFold(code, r.Symbol); err != nil || !wanted {
			return false, err
		}
		if start, known := o.starts[code]; !known || day < start {
			o.starts[code] = day
		}
		o.codes[asset] = code
		return true, nil
	}
	for _, span := range spans {
		if _, err := begin(span.Asset, span.First); err != nil {
			return o, err
		}
	}
	if o.summed = lastSummedDay(spans); o.summed >= r.Last {
		return o, nil
	}
	moved, err := s.Store.Moved(ctx, Start(o.summed+1), Start(r.Last+1))
	if err != nil {
		return o, err
	}
	for _, d := range moved {
		wanted, err := begin(d.Asset, d.Day)
		if err != nil {
			return o, err
		}
		if wanted {
			o.moved = append(o.moved, d)
		}
	}
	return o, nil
}

// window returns the positions from one day to another, in order.
func (s *Service) window(ctx context.Context, o open, first, end int64) ([]Position, error) {
	before, err := s.Store.Before(ctx, min(first, o.summed+1)) // a job may have summed more days meanwhile
	if err != nil {
		return nil, err
	}
	var days []Day
	if first <= o.summed {
		wanted := make([]int64, 0, len(o.codes))
		for asset := range o.codes {
			wanted = append(wanted, asset)
		}
		slices.Sort(wanted)
		if days, err = s.Store.Days(ctx, first, min(end, o.summed), wanted); err != nil {
			return nil, err
		}
	}
	at := byAsset(before)
	moved := map[int64][]Day{} // by day
	for _, d := range days {
		moved[d.Day] = append(moved[d.Day], d)
	}
	for _, d := range o.moved {
		if d.Day >= first {
			moved[d.Day] = append(moved[d.Day], d)
		} else {
			at[d.Asset] = at[d.Asset].grown(d)
		}
	}
	var out []Position
	for day := first; day <= end; day++ {
		for _, d := range moved[day] {
			at[d.Asset] = at[d.Asset].grown(d)
		}
		out = append(out, o.position(day, at)...)
	}
	sorting.Func(out, func(a, b Position) int { return order(a.Mark(), b.Mark()) })
	return out, nil
}

// position adds up the assets of each currency, by their last movement up to a day.
func (o open) position(day int64, at map[int64]Day) []Position {
	sums := map[string]*Position{}
	for code, start := range o.starts {
		if start <= day {
			sums[code] = &Position{Day: day, Symbol: code}
		}
	}
	out := make([]Position, 0, len(sums))
	for asset, d := range at {
		p := sums[o.codes[asset]]
		if p == nil {
			continue
		}
		if d.Day != day {
			d.In, d.Out = amount.Sum{}, amount.Sum{}
		}
		p.Deposit, p.Withdrawal, p.Balance = p.Deposit.Add(d.In), p.Withdrawal.Add(d.Out), p.Balance.Add(d.Posted)
		p.Net = p.Deposit.Sub(p.Withdrawal)
	}
	for _, p := range sums {
		out = append(out, *p)
	}
	return out
}
