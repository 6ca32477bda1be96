package rate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// asked is a store that notes the date of a read and how many rates it was given.
type asked struct {
	rate.Store
	at time.Time
}

func (a *asked) Last(_ context.Context, at time.Time, _ ...rate.Pair) ([]rate.Quote, error) {
	a.at = at
	return []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}}}, nil
}

// D-CUR-08: the rates of a date are those of two hours before, in whole milliseconds.
func TestRatesOfADate(t *testing.T) {
	store := &asked{}
	s := rate.Service{Store: store}
	got, err := s.LastBy(t.Context(), time.Date(2026, 3, 1, 1, 0, 0, 1_999_999, time.UTC))
	want := time.Date(2026, 2, 28, 23, 0, 0, 1_000_000, time.UTC)
	if err != nil || len(got) != 1 || !store.at.Equal(want) {
		t.Errorf("%v, %v at %v, want %v", got, err, store.at, want)
	}
}

// A rate is written as a number, and equals the same number in another notation.
func TestRateIsANumber(t *testing.T) {
	for text, want := range map[string]string{"1.50": "1.5", "40": "40", "0.00000001": "0.00000001"} {
		got, err := json.Marshal(rate.Must(text))
		if err != nil || string(got) != want || !rate.Must(text).Equal(rate.Must(want)) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if rate.Must("1").Equal(rate.Must("1.00000001")) {
		t.Error("different rates are equal")
	}
}

// An import stores all rates or none, and is audited if one of them is new or changed.
func TestImport(t *testing.T) {
	db, at := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_000).UTC()
	store, changes := money.NewRates(db), admin.Changes{Commit: db, Now: func() time.Time { return at }}
	quotes := []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("4000000"), At: at},
		{Pair: rate.Pair{Base: "USD", Quote: "TRY"}, Rate: rate.Must("40"), At: at}}
	by := audit.By{UserID: "op"}
	changed := 0
	persistencetest.Fails(t, db, "exchange_rate audit", func(ctx context.Context) (err error) {
		changed, err = rate.Import(ctx, store, changes, by, quotes)
		return err
	})
	if changed != 2 {
		t.Errorf("%d of 2 are new", changed)
	}
	quotes[1].Rate = rate.Must("41")
	for _, want := range []int{1, 0} {
		if n, err := rate.Import(t.Context(), store, changes, by, quotes); err != nil || n != want {
			t.Errorf("%d changed, %v, want %d", n, err, want)
		}
	}
	storetest.Same(t, persistencetest.Acts(t, db), []string{"RATES_IMPORT|op||rates|rates=2 changed=2",
		"RATES_IMPORT|op||rates|rates=2 changed=1"})
	down := errors.New("down")
	if n, err := rate.Import(t.Context(), refusing{err: down}, changes, by, quotes); !errors.Is(err, down) || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// refusing is a store that takes no rates.
type refusing struct {
	rate.Store
	err error
}

func (r refusing) Add(context.Context, string, []rate.Quote) (int, error) { return 0, r.err }
