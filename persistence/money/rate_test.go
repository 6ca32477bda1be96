package money_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
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

// All rates of a list are stored, whether they fill statements of 500 rows or not. Only those that change are counted,
// and of two for one instant the later one counts.
func TestManyRates(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := money.NewRates(db)
		quotes := func(n int, value string) (all []rate.Quote) {
			for i := range n {
				all = append(all, rate.Quote{Pair: rate.Pair{Base: fmt.Sprint("N", n), Quote: fmt.Sprintf("Q%04d", i)},
					Rate: rate.Must(value), At: time.UnixMilli(5)})
			}
			return all
		}
		for _, n := range []int{0, 1, 499, 500, 501, 1000, 1001} {
			add := func(what string, want int, all []rate.Quote) {
				t.Helper()
				if changed, err := s.Add(t.Context(), "test", all); err != nil || changed != want {
					t.Errorf("%s %d: %d changed, %v", what, n, changed, err)
				}
			}
			add("new", n, quotes(n, "2"))
			add("the same", 0, quotes(n, "2"))
			all := append(quotes(n, "2"), quotes(n, "3")[:min(n, 1)]...)
			add("one later", min(n, 1), all)
			if n == 0 {
				continue
			}
			got, err := s.Last(t.Context(), time.UnixMilli(5))
			storetest.Must(t, err)
			var of []rate.Quote
			for _, q := range got {
				if q.Base == fmt.Sprint("N", n) {
					of = append(of, q)
				}
			}
			if len(of) != n || of[0].Rate.String() != "3" || n > 1 && of[n-1].Rate.String() != "2" ||
				!of[0].At.Equal(time.UnixMilli(5)) {
				t.Errorf("%d of %d rates", len(of), n)
			}
		}
	})
}

// A rate that cannot be read is named in the error. A list of rates that cannot be stored changes nothing.
func TestDamagedAndFailedRates(t *testing.T) {
	db := persistencetest.SQLite(t)
	s := money.NewRates(db)
	quotes := []rate.Quote{{Pair: rate.Pair{Base: "A", Quote: "B"}, Rate: rate.Must("2"), At: time.UnixMilli(5)}}
	persistencetest.Fails(t, db, "exchange_pair exchange_rate", func(ctx context.Context) error {
		changed, err := s.Add(ctx, "test", quotes)
		if (changed == 1) != (err == nil) || err != nil && changed != 0 {
			t.Errorf("%d changed, %v", changed, err)
		}
		return err
	})
	persistencetest.Exec(t, db, "CREATE TRIGGER refused BEFORE INSERT ON exchange_pair "+
		"BEGIN SELECT RAISE(ABORT, 'no'); END")
	quotes[0].Base = "C"
	changed, err := s.Add(t.Context(), "test", quotes)
	if err == nil || !strings.Contains(err.Error(), "no") || changed != 0 {
		t.Errorf("a refused pair: %d changed, %v", changed, err)
	}
	persistencetest.Exec(t, db, "UPDATE exchange_rate SET rate = 'x'")
	got, err := s.Last(t.Context(), time.UnixMilli(5))
	if err == nil || !strings.Contains(err.Error(), "read the rate of A in B") || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// All balances of an account at a provider are stored with its snapshot, whether they fill statements of 500 rows or
// not. The first snapshot of an instant counts, and one that fails leaves nothing.
func TestManyBalancesAtAProvider(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		arrived := func(account string, n int, free string) (w provider.Arrived) {
			w = provider.Arrived{Provider: "p", Account: account, At: time.UnixMilli(5)}
			for i := range n {
				w.Balances = append(w.Balances, provider.Balance{Asset: fmt.Sprintf("A%04d", i), Free: amount.Must(free),
					Locked: amount.Must("0.5")})
			}
			return w
		}
		for _, n := range []int{1, 499, 500, 501, 1001} {
			account := fmt.Sprint("a", n)
			storetest.Must(t, db.Commit(t.Context(), arrived(account, n, "2")))
			storetest.Must(t, db.Commit(t.Context(), arrived(account, n, "3")))
			got, err := money.NewProviders(db).Latest(t.Context(), "p", account, "")
			if err != nil || len(got) != n {
				t.Errorf("%d of %d balances, %v", len(got), n, err)
			}
			for _, e := range got {
				if e.Free != amount.Must("2") || e.Locked != amount.Must("0.5") || !e.At.Equal(time.UnixMilli(5)) {
					t.Fatalf("%+v", e)
				}
			}
		}
		if !db.Postgres() {
			persistencetest.Fails(t, db, "provider_account provider_snapshot provider_balance",
				func(ctx context.Context) error { return db.Commit(ctx, arrived("failed", 2, "2")) })
		}
	})
}
