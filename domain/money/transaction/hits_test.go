package transaction_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence/money"
)

// lostHits fails to store.
type lostHits struct{ policy.HitStore }

func (lostHits) AddHits(context.Context, time.Time, map[policy.Named]int64) error {
	return errors.New("down")
}

// A movement counts once for each rule that asks for something, or would on trial: when it is refused, held or credited,
// and when a newer rule holds its claim. Repetitions and judgements at the end of a hold do not count.
func TestHitsOfRules(t *testing.T) {
	l := newTill(t)
	d, s := l.desk, l.Service
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "100"))
	j := d.judges(`{"match":{"amount":{"over":"0.08","unit":"ASSET"},"assets":[{"currencyCode":"BTC"}]},`+deny+`}`,
		`{"match":{"amount":{"over":"0.04","unit":"ASSET"},"assets":[{"currencyCode":"BTC"}]},`+day+`}`,
		`{"status":"TRIAL",`+deny+`}`, `{"kinds":["DEPOSIT"],"match":{"amount":{"over":"4","unit":"ASSET"},`+
			`"assets":[{"currencyCode":"BTC"}]},"effect":{"type":"APPROVAL","group":"treasury","required":1}}`)
	s.Judge = j
	hits, store := new(policy.Hits), money.NewRules(d.m.DB)
	j.Hits = hits
	want := func(counts ...int64) {
		t.Helper()
		if hits.Flush(t.Context(), lostHits{}, d.now()) == nil {
			t.Error("a failure is not reported")
		}
		storetest.Must(t, hits.Flush(t.Context(), store, d.now()))
		got, err := store.Hits(t.Context(), d.now().Add(-policy.Day))
		storetest.Must(t, err)
		all := map[policy.Named]int64{}
		for i, n := range counts {
			if n > 0 {
				all[policy.Named{Label: fmt.Sprint("rule ", i), Version: 1}] = n
			}
		}
		storetest.Same(t, got, all)
	}
	_, err := d.ask("u", "BTC", 9, "denied")
	storetest.Wants(t, err, fault.PolicyDenied)
	want(1, 1, 1)
	held, err := d.ask("u", "BTC", 5, "held")
	storetest.Must(t, err)
	_, err = d.ask("u", "BTC", 5, "held") // a repetition
	storetest.Must(t, err)
	small, err := d.ask("u", "BTC", 1, "small")
	storetest.Must(t, err)
	want(1, 2, 3)
	d.advance(24 * time.Hour)
	storetest.Must(t, d.EndHolds(t.Context()))
	d.read(held.Queued.ID, transaction.QueueReady, "")
	storetest.Must(t, d.move(held.Queued.ID, transaction.QueueProcessing))
	for range 2 { // the second report changes nothing
		_, err = s.Report(t.Context(), wallet, transaction.Report{ExternalID: "d", UserID: "u", CurrencyCode: "BTC",
			Network: "BTC", Amount: amount.Must("5"), TxID: "tx", Final: true})
		storetest.Must(t, err)
	}
	want(1, 2, 3, 1)
	d.judges(`{` + deny + `}`).Hits = hits // a newer rule
	storetest.Wants(t, d.move(small.Queued.ID, transaction.QueueProcessing), fault.InvalidState)
	want(2, 2, 3, 1)
}
