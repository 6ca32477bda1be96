package money_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
	"castellan/domain/money/rate/ratetest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestRateStore(t *testing.T) {
	persistencetest.RunBoth(t, ratetest.Run, func(db *persistence.DB) rate.Store { return money.NewRates(db) },
		"exchange_rate", "exchange_pair")
}

// The last rate of a pair is one step of the primary key, however many rates there are.
func TestLastRatesAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := money.NewRates(db)
		all := make([]rate.Quote, 1000)
		for i := range all {
			all[i] = rate.Quote{Pair: rate.Pair{Base: "A", Quote: fmt.Sprint("B", i%4)}, Rate: rate.Must("2"),
				At: time.UnixMilli(int64(i))}
		}
		_, err := s.Add(t.Context(), "test", all)
		storetest.Must(t, err)
		for name, pairs := range map[string][]rate.Pair{
			"of one": {{Base: "A", Quote: "B1"}}, "of a rate": rate.Needed(rate.Pair{Base: "EUR", Quote: "TRY"}), "of all": nil,
		} {
			plan := strings.ToLower(persistencetest.Explain(t, db, s.LastQuery(t.Context(), time.UnixMilli(500), pairs)))
			key := "using exchange_rate_pkey on exchange_rate"
			if !db.Postgres() {
				key = "sqlite_autoindex_exchange_rate_1 (pair_id=? and at<?)"
			}
			if strings.Count(plan, key) != 2 || strings.Contains(plan, "scan r") || strings.Contains(plan, "seq scan") {
				t.Errorf("%s:\n%s", name, plan)
			}
		}
	})
}
