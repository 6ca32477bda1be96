package rate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

// lastRates is a store of the last rates.
type lastRates struct {
	rate.Store
	all []rate.Quote
	err error
}

func (l lastRates) Last(context.Context, time.Time, ...rate.Pair) ([]rate.Quote, error) {
	return l.all, l.err
}

// A currency is worth itself, without a stored rate. Any other pair needs one.
func TestCurrentRate(t *testing.T) {
	now, down := time.UnixMilli(1_700_000_000_000), errors.New("the database is down")
	s := rate.Service{Store: lastRates{err: down}, Now: func() time.Time { return now }}
	if q, err := s.Rate(t.Context(), "btc", "BTC"); err != nil || q.Rate.String() != "1" || q.Base != "BTC" ||
		!q.At.Equal(now) {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := s.Rate(t.Context(), "BTC", "TRY"); !errors.Is(err, down) {
		t.Errorf("without the store: %v", err)
	}
	s.Store = lastRates{}
	_, err := s.Rate(t.Context(), "BTC", "TRY")
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = s.Rate(t.Context(), "", "a b")
	storetest.WantsFields(t, err, "base quote")
	s.Store = lastRates{all: []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("100")}}}
	if q, err := s.Rate(t.Context(), "btc", "try"); err != nil || q.Rate.String() != "100" {
		t.Errorf("%+v, %v", q, err)
	}
}
