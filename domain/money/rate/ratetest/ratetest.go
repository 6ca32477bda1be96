// Package ratetest is the test suite of the contract rate.Store.
package ratetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/rate"
)

// Run checks an implementation of rate.Store.
func Run(t *testing.T, open storetest.Open[rate.Store]) {
	storetest.Run(t, open, storetest.Cases[rate.Store]{
		"Last":              last,
		"Exact":             exact,
		"AddedAgain":        addedAgain,
		"Many":              many,
		"Arrived":           arrived,
		"AtOnce":            atOnce,
		"JoinsTransactions": joinsTransactions,
	})
}

func quote(base, quote, r string, at int64) rate.Quote {
	return rate.Quote{Pair: rate.Pair{Base: base, Quote: quote}, Rate: rate.Must(r), At: time.UnixMilli(at).UTC()}
}

func add(t *testing.T, s rate.Store, quotes ...rate.Quote) int {
	t.Helper()
	n, err := s.Add(t.Context(), "test", quotes)
	storetest.Must(t, err)
	return n
}

func wants(t *testing.T, s rate.Store, until int64, want string, pairs ...rate.Pair) {
	t.Helper()
	qs, err := s.Last(t.Context(), time.UnixMilli(until), pairs...)
	storetest.Must(t, err)
	got := ""
	for _, q := range qs {
		got += fmt.Sprintf("%s/%s=%v@%d ", q.Base, q.Quote, q.Rate, q.At.UnixMilli())
	}
	if got != want {
		t.Errorf("until %d of %v:\n got %s\nwant %s", until, pairs, got, want)
	}
}

func last(t *testing.T, s rate.Store, _ commit.Committer) {
	wants(t, s, 100, "")
	if n := add(t, s, quote("USD", "TRY", "40", 10), quote("USD", "TRY", "41", 30), quote("USD", "TRY", "39", 20),
		quote("EUR", "USD", "1.1", 15), quote("USD", "EUR", "0.9", 40)); n != 5 {
		t.Errorf("%d are new", n)
	}
	if n := add(t, s); n != 0 {
		t.Errorf("none added, %d are new", n)
	}
	wants(t, s, 9, "")
	wants(t, s, 10, "USD/TRY=40@10 ")
	wants(t, s, 19, "EUR/USD=1.1@15 USD/TRY=40@10 ")
	wants(t, s, 29, "EUR/USD=1.1@15 USD/TRY=39@20 ")
	wants(t, s, 100, "EUR/USD=1.1@15 USD/EUR=0.9@40 USD/TRY=41@30 ")
	wants(t, s, 100, "USD/TRY=41@30 ", rate.Pair{Base: "USD", Quote: "TRY"}, rate.Pair{Base: "TRY", Quote: "USD"})
	wants(t, s, 39, "EUR/USD=1.1@15 ", rate.Pair{Base: "EUR", Quote: "USD"}, rate.Pair{Base: "USD", Quote: "EUR"})
	wants(t, s, 100, "", rate.Pair{Base: "usd", Quote: "TRY"})
}

func exact(t *testing.T, s rate.Store, _ commit.Committer) {
	for i, text := range []string{"0.000000000000000000000001", "999999999999999999.999999999999999999999999",
		"9007199254740993.1", "0.1", "100"} {
		add(t, s, quote("A", "B", text, int64(i+1)))
		wants(t, s, int64(i+1), fmt.Sprintf("A/B=%s@%d ", text, i+1))
	}
}

// Adding the same rates again changes nothing; another rate of the same instant replaces the old one.
func addedAgain(t *testing.T, s rate.Store, _ commit.Committer) {
	three := []rate.Quote{quote("A", "B", "1", 1), quote("A", "B", "2", 2), quote("B", "C", "3", 1)}
	for i, want := range []int{3, 0, 0} {
		if n := add(t, s, three...); n != want {
			t.Errorf("time %d: %d new", i, n)
		}
	}
	three[1].Rate = rate.Must("2.5")
	if n := add(t, s, three...); n != 1 {
		t.Errorf("%d changed", n)
	}
	if n := add(t, s, quote("A", "B", "7", 3), quote("A", "B", "8", 4), quote("A", "B", "9", 3)); n != 2 {
		t.Errorf("%d changed", n)
	}
	wants(t, s, 3, "A/B=9@3 B/C=3@1 ")
}

func many(t *testing.T, s rate.Store, _ commit.Committer) {
	const n = 2345
	all := make([]rate.Quote, n)
	for i := range all {
		all[i] = quote("A", fmt.Sprint("B", i%7), "1.5", int64(i+1))
	}
	if got := add(t, s, all...); got != n {
		t.Errorf("%d of %d are new", got, n)
	}
	wants(t, s, n, "A/B6=1.5@2345 ", rate.Pair{Base: "A", Quote: "B6"})
}

// Rates fetched by a job commit with its other writes, and only once if the job runs again.
func arrived(t *testing.T, s rate.Store, c commit.Committer) {
	w := rate.Arrived{Source: "rates.test",
		Quotes: []rate.Quote{quote("USD", "TRY", "41.5", 7), quote("USD", "EUR", "1", 7)}}
	for range 2 {
		storetest.Must(t, c.Commit(t.Context(), w))
		wants(t, s, 9, "USD/EUR=1@7 USD/TRY=41.5@7 ")
	}
	if n := add(t, s, w.Quotes...); n != 0 {
		t.Errorf("%d are new", n)
	}
}

// Concurrent writers of the same rates of new pairs neither fail nor store a rate twice.
func atOnce(t *testing.T, s rate.Store, _ commit.Committer) {
	storetest.Race(t, 6, fault.Internal, func(i int) error {
		two := []rate.Quote{quote("A", "B", "1", 1), quote("B", "C", "2", 1)}
		if i%2 == 0 {
			two[0], two[1] = two[1], two[0]
		}
		n, err := s.Add(t.Context(), "test", two)
		if err != nil || n != 0 && n != 2 {
			t.Errorf("%d new, %v", n, err)
		}
		return nil
	})
	wants(t, s, 1, "A/B=1@1 B/C=2@1 ")
}

func joinsTransactions(t *testing.T, s rate.Store, tx commit.Committer) {
	refusal := errors.New("no")
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		_, err := s.Add(ctx, "test", []rate.Quote{quote("A", "B", "1", 1)})
		storetest.Must(t, err)
		if qs, err := s.Last(ctx, time.UnixMilli(1)); err != nil || len(qs) != 1 {
			t.Errorf("a transaction does not see what it wrote: %v, %v", qs, err)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	wants(t, s, 1, "")
}
