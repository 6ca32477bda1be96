package money_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
	"castellan/domain/money/rate"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestRateStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) rate.Store { return money.NewRates(db) },
		storetest.Cases[rate.Store]{
			"Exact":             rateExact,
			"Arrived":           rateArrived,
			"AtOnce":            rateAtOnce,
			"JoinsTransactions": rateJoinsTransactions,
		}, "exchange_rate", "exchange_pair")
}

func quoteAt(base, quote, r string, at int64) rate.Quote {
	return rate.Quote{Pair: rate.Pair{Base: base, Quote: quote}, Rate: rate.Must(r), At: time.UnixMilli(at).UTC()}
}

func addRates(t *testing.T, s rate.Store, quotes ...rate.Quote) int {
	t.Helper()
	return storetest.Value(s.Add(t.Context(), "test", quotes))(t)
}

func wantsRates(t *testing.T, s rate.Store, until int64, want string, pairs ...rate.Pair) {
	t.Helper()
	qs := storetest.Value(s.Last(t.Context(), time.UnixMilli(until), pairs...))(t)
	got := ""
	for _, q := range qs {
		got += fmt.Sprintf("%s/%s=%v@%d ", q.Base, q.Quote, q.Rate, q.At.UnixMilli())
	}
	storetest.Equal(t, got, want, "until", until, "of", pairs)
}

func rateExact(t *testing.T, s rate.Store, _ commit.Committer) {
	for i, text := range []string{"0.000000000000000000000001", "999999999999999999.999999999999999999999999",
		"9007199254740993.1", "0.1", "100"} {
		addRates(t, s, quoteAt("A", "B", text, int64(i+1)))
		wantsRates(t, s, int64(i+1), fmt.Sprintf("A/B=%s@%d ", text, i+1))
	}
}

// Rates fetched by a job commit with its other writes, and only once if the job runs again.
func rateArrived(t *testing.T, s rate.Store, c commit.Committer) {
	w := rate.Arrived{Source: "rates.test",
		Quotes: []rate.Quote{quoteAt("USD", "TRY", "41.5", 7), quoteAt("USD", "EUR", "1", 7)}}
	for range 2 {
		storetest.Must(t, c.Commit(t.Context(), w))
		wantsRates(t, s, 9, "USD/EUR=1@7 USD/TRY=41.5@7 ")
	}
	storetest.Equal(t, addRates(t, s, w.Quotes...), 0, "are new")
}

// Concurrent writers of the same rates of new pairs neither fail nor store a rate twice.
func rateAtOnce(t *testing.T, s rate.Store, _ commit.Committer) {
	storetest.Race(t, 6, fault.Internal, func(i int) error {
		two := []rate.Quote{quoteAt("A", "B", "1", 1), quoteAt("B", "C", "2", 1)}
		if i%2 == 0 {
			two[0], two[1] = two[1], two[0]
		}
		n, err := s.Add(t.Context(), "test", two)
		if err != nil || n != 0 && n != 2 {
			t.Errorf("%d new, %v", n, err)
		}
		return nil
	})
	wantsRates(t, s, 1, "A/B=1@1 B/C=2@1 ")
}

func rateJoinsTransactions(t *testing.T, s rate.Store, tx commit.Committer) {
	refusal := errors.New("no")
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		_, err := s.Add(ctx, "test", []rate.Quote{quoteAt("A", "B", "1", 1)})
		storetest.Must(t, err)
		if qs, err := s.Last(ctx, time.UnixMilli(1)); err != nil || len(qs) != 1 {
			t.Errorf("a transaction does not see what it wrote: %v, %v", qs, err)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	wantsRates(t, s, 1, "")
}

// The last rate of a pair is one step of the primary key, however many rates there are.
func TestLastRatesAreFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		s := money.NewRates(db)
		all := make([]rate.Quote, 1000)
		for i := range all {
			all[i] = rate.Quote{Pair: rate.Pair{Base: "A", Quote: fmt.Sprint("B", i%4)}, Rate: rate.Must("2"),
				At: time.UnixMilli(int64(i))}
		}
		r.Plan(storetest.Err(s.Add(r.Context(), "test", all)))
		for name, pairs := range map[string][]rate.Pair{
			"of one": {{Base: "A", Quote: "B1"}}, "of a rate": rate.Needed(rate.Pair{Base: "EUR", Quote: "TRY"}), "of all": nil,
		} {
			plan := strings.ToLower(r.Plan(storetest.Err(s.Last(r.Context(), time.UnixMilli(500), pairs...))))
			key := "using exchange_rate_pkey on exchange_rate"
			if !db.Postgres() {
				key = "sqlite_autoindex_exchange_rate_1 (pair_id=? and at<?)"
			}
			if strings.Count(plan, key) != 2 || strings.Contains(plan, "scan r") || strings.Contains(plan, "seq scan") {
				r.Errorf("%s:\n%s", name, plan)
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
			got := storetest.Value(s.Last(t.Context(), time.UnixMilli(5)))(t)
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
		other, err := db.Conn(t.Context()).NewSelect().Table("exchange_rate").Where("source <> 'test'").Count(t.Context())
		if err != nil || other > 0 {
			t.Errorf("%d rates of another source, %v", other, err)
		}
	})
}

// A rate that cannot be read is named in the error. A list of rates that cannot be stored changes nothing.
func TestDamagedRates(t *testing.T) {
	db := persistencetest.SQLite(t)
	s := money.NewRates(db)
	quotes := []rate.Quote{{Pair: rate.Pair{Base: "A", Quote: "B"}, Rate: rate.Must("2"), At: time.UnixMilli(5)}}
	_, err := s.Add(t.Context(), "test", quotes)
	storetest.Must(t, err)
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
