package rate

import (
	"context"
	"time"

	"castellan/domain/kit/fault"
)

// Store stores all rates permanently. Every method joins the transaction that its context carries. It is safe for
// concurrent use.
type Store interface {
	// Add stores rates of a source. A rate replaces a stored rate of the same pair and instant, and an earlier one of
	// the list. It returns how many are new or changed.
	Add(ctx context.Context, source string, quotes []Quote) (int, error)
	// Last lists the last rate of each pair at or before an instant, by base and quote; without pairs, the rates of all
	// pairs.
	Last(ctx context.Context, until time.Time, pairs ...Pair) ([]Quote, error)
}

// Service returns rates. It is safe for concurrent use.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Rate returns the current rate of a pair, whose codes may be in any case (D-CUR-07). INVALID_FIELD; RECORD_NOT_FOUND
// if no stored rate links the two.
func (s *Service) Rate(ctx context.Context, base, quote string) (Quote, error) {
	q, known, other := Quote{}, false, false
	q.Base, known = Code(base)
	q.Quote, other = Code(quote)
	var ps fault.Problems
	ps.Require(known, "base", "is not the code of a currency")
	ps.Require(other, "quote", "is not the code of a currency")
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
		return q, fault.New(fault.RecordNotFound, "there is no rate of %s in %s", q.Base, q.Quote)
	}
	return q, nil
}

// shift is how far a date is moved back before its rates are looked up (D-CUR-08).
const shift = 2 * time.Hour

// LastBy lists the last rate of every pair at a date (D-CUR-08), which is moved back two hours and truncated to
// milliseconds.
func (s *Service) LastBy(ctx context.Context, date time.Time) ([]Quote, error) {
	return s.Store.Last(ctx, date.Add(-shift).Truncate(time.Millisecond))
}
