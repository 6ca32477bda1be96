package rate

import (
	"context"
	"time"

	"castellan/domain/kit/fault"
)

// Store keeps every rate that ever arrived. Every method joins the transaction
// that its context carries. It is safe for concurrent use and passes ratetest.Run.
type Store interface {
	// Add stores rates of a source. A rate of a pair and an instant that is stored
	// already takes its place, and so does a later one of the list. It returns how
	// many are new or changed.
	Add(ctx context.Context, source string, quotes []Quote) (int, error)
	// Last lists the last rate of each pair at an instant or before it, by base and
	// quote; of all pairs where none is named.
	Last(ctx context.Context, until time.Time, pairs ...Pair) ([]Quote, error)
}

// Service tells rates. It is safe for concurrent use.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Rate tells the rate of a pair now, whose codes may be written in any case
// (D-CUR-07). INVALID_FIELD; RECORD_NOT_FOUND where no stored rate leads from one
// to the other.
func (s *Service) Rate(ctx context.Context, base, quote string) (Quote, error) {
	var q Quote
	var ps []fault.Problem
	for _, c := range []struct {
		field, text string
		to          *string
	}{{"base", base, &q.Base}, {"quote", quote, &q.Quote}} {
		var ok bool
		if *c.to, ok = Code(c.text); !ok {
			ps = append(ps, fault.Problem{Field: c.field, Message: "is not the code of a currency"})
		}
	}
	if err := fault.All(ps); err != nil {
		return q, err
	}
	if q.At = s.Now(); q.Base == q.Quote {
		q.Rate = one
		return q, nil
	}
	last, err := s.Store.Last(ctx, q.At, Needed(q.Pair)...)
	if err != nil {
		return q, err
	}
	var ok bool
	if q.Rate, ok = Find(q.Pair, last); !ok {
		return q, fault.New(fault.RecordNotFound, "no rate of %s in %s is known", q.Base, q.Quote)
	}
	return q, nil
}

// shift is how far a date is moved back before the rates of it are looked up
// (D-CUR-08).
const shift = 2 * time.Hour

// LastBy lists the last rate of every pair by a date (D-CUR-08), which is moved
// back two hours and cut to milliseconds.
func (s *Service) LastBy(ctx context.Context, date time.Time) ([]Quote, error) {
	return s.Store.Last(ctx, date.Add(-shift).Truncate(time.Millisecond))
}
