package rate

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/sheet"
)

// maxLines is the maximum length of a file, because its rates are stored in one transaction.
const maxLines = 100_000

// columns are the required columns of a file, in any order; others are ignored.
var columns = []string{"base", "quote", "rate", "date"}

// ReadCSV reads rates from a file (RFC 4180) whose first line names its columns: base, quote, rate and date, which is
// RFC 3339 or a day. An error names the first invalid line by its number. progress is called from time to time with the
// number of lines read.
func ReadCSV(r io.Reader, now time.Time, progress func(lines int)) ([]Quote, error) {
	text, err := sheet.Text(r)
	if err != nil {
		return nil, err
	}
	file := csv.NewReader(text)
	file.ReuseRecord = true
	head, err := file.Read()
	if err != nil {
		return nil, fmt.Errorf("line 1, the column names: %w", sheet.Fault(err, len(head), len(columns)))
	}
	if err := cmp.Or(sheet.Encoding(strings.Join(head, ",")), sheet.Separator(head)); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	var at [4]int
	for i, name := range columns {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, fmt.Errorf("line 1: %w; it must have %s", sheet.Missing(name, head), strings.Join(columns, ", "))
		}
	}
	fields := len(head)
	type place struct {
		Pair
		at int64
	}
	seen := map[place]int{}
	var all []Quote
	for {
		record, err := file.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return nil, fmt.Errorf("line %d: %w", parse.Line, sheet.Fault(err, len(record), fields))
		}
		if err != nil {
			return nil, err
		}
		line, _ := file.FieldPos(0)
		q, err := quoteOf(record[at[0]], record[at[1]], record[at[2]], record[at[3]], now)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		p := place{q.Pair, q.At.UnixMilli()}
		if first, twice := seen[p]; twice {
			return nil, fmt.Errorf("line %d: line %d already has a rate of that pair and date", line, first)
		}
		if seen[p] = line; len(all) == maxLines {
			return nil, fmt.Errorf("line %d: a file has at most %d rates; split it", line, maxLines)
		}
		if all = append(all, q); len(all)%(maxLines/10) == 0 {
			progress(len(all))
		}
	}
}

func quoteOf(base, quote, value, date string, now time.Time) (q Quote, err error) {
	var known, other bool
	q.Base, known = Code(base)
	if q.Quote, other = Code(quote); !known || !other || q.Base == q.Quote {
		return q, errors.New("base and quote must be the codes of two currencies")
	}
	if q.Rate, err = Parse(strings.TrimSpace(value)); err != nil {
		return q, fmt.Errorf("rate %w", err)
	}
	date = strings.TrimSpace(date)
	if q.At, err = time.Parse(time.RFC3339, date); err != nil {
		q.At, err = time.Parse(time.DateOnly, date)
	}
	if err != nil {
		return q, errors.New("date must be like 2026-01-31T10:00:00Z or 2026-01-31")
	}
	if q.At = q.At.UTC().Truncate(time.Millisecond); q.At.After(now) {
		return q, errors.New("date is in the future")
	}
	return q, nil
}

// Import stores the rates supplied by an operator, all or none, and returns how many of them are new or changed.
func Import(ctx context.Context, s Store, changes admin.Changes, by audit.By, quotes []Quote) (changed int, err error) {
	err = changes.Do(ctx, by, "RATES_IMPORT", func(ctx context.Context) (admin.Done, error) {
		if changed, err = s.Add(ctx, "import", quotes); err != nil || changed == 0 {
			return admin.Done{}, err
		}
		return admin.Done{Target: "rates", Detail: fmt.Sprintf("rates=%d changed=%d", len(quotes), changed)}, nil
	})
	return changed, err
}
