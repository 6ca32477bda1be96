// Package balancetest is the test suite of the contract balance.Store.
package balancetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/balance"
	"castellan/domain/money/ledger"
)

// Site is a store with an empty ledger.
type Site struct {
	Store  balance.Store
	Ledger ledger.Store
	Commit commit.Committer
}

// Cases test an implementation of balance.Store. Each case needs its own ledger, because a ledger is never emptied.
var Cases = map[string]func(t *testing.T, s Site){"Sums": sums, "Moved": moved, "Days": days, "AtOnce": atOnce}

// noon is noon of a day.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func account(owner string, asset int64) ledger.Account {
	if owner == "" {
		return ledger.Account{Kind: ledger.Treasury, Asset: asset}
	}
	return ledger.Account{Kind: ledger.User, Owner: owner, Asset: asset}
}

func (s Site) do(t *testing.T, m ledger.Movement) {
	t.Helper()
	l := &ledger.Ledger{Store: s.Ledger, Commit: s.Commit, Now: time.Now,
		Decimals: func(context.Context, int64) (int, error) { return 18, nil }}
	_, err := l.Do(t.Context(), audit.By{UserID: "admin"}, m)
	storetest.Must(t, err)
}

var refs int

// move transfers an amount at an instant; "" is the treasury.
func (s Site) move(t *testing.T, at time.Time, from, to string, asset int64, sum string) {
	t.Helper()
	refs++
	s.do(t, ledger.Movement{Transfers: []ledger.Transfer{ledger.New(at, "test", fmt.Sprint(refs), account(from, asset),
		account(to, asset), amount.Must(sum))}})
}

// Sums are exact; a lock beyond one balance does not reduce another.
func sums(t *testing.T, s Site) {
	const tiny = "0.000000000000000001"
	for i := range 12 { // more parts than one integer can hold
		s.move(t, noon, "", fmt.Sprint("u", i), 1, "0.999999999999999999")
	}
	s.move(t, noon, "", "u0", 2, "499999999999999998")
	s.move(t, noon, "", "u1", 2, "1."+tiny[2:])
	s.move(t, noon, "", "u3", 3, "5")
	s.move(t, noon, "u3", "", 3, "5")
	s.move(t, noon, "", "u2", 3, "5")
	s.move(t, noon, "u2", "", 3, "5")
	hold := func(owner string, asset int64, sum string) {
		h := ledger.NewHold(noon, "test", owner+sum, "test", account(owner, asset), amount.Must(sum))
		h.Beyond = true
		s.do(t, ledger.Movement{Take: []ledger.Hold{h}})
	}
	hold("u0", 1, "7.5")
	hold("u1", 1, tiny)
	hold("u0", 2, "0.5")
	hold("u2", 3, "999999999999999999")
	hold("u3", 3, "999999999999999999")
	const all, one, two = "{1 11.999999999999999988 10.999999999999999988 7.500000000000000001}",
		"{2 499999999999999999.000000000000000001 499999999999999998.500000000000000001 0.5}",
		"{3 0 0 999999999999999999.999999999999999999}"
	for _, tc := range []struct {
		q    balance.Query
		want string
	}{
		{balance.Query{}, "[" + all + " " + one + " " + two + "]"},
		{balance.Query{Assets: []int64{3, 1, 99}}, "[" + all + " " + two + "]"},
		{balance.Query{Assets: []int64{}}, "[]"},
		{balance.Query{UserID: new("u1")}, "[{1 0.999999999999999999 0.999999999999999998 " + tiny + "} {2 1." + tiny[2:] +
			" 1." + tiny[2:] + " 0}]"},
		{balance.Query{UserID: new("u0"), Assets: []int64{1}}, "[{1 0.999999999999999999 0 7.5}]"},
		{balance.Query{UserID: new("u0"), Assets: []int64{}}, "[]"},
		{balance.Query{UserID: new("nobody")}, "[]"},
	} {
		got, err := s.Store.Sums(t.Context(), tc.q)
		if storetest.Must(t, err); fmt.Sprint(got) != tc.want {
			t.Errorf("%+v:\n got %v\nwant %s", tc.q, got, tc.want)
		}
	}
}

func moved(t *testing.T, s Site) {
	midnight := noon.Add(-12 * time.Hour)
	s.move(t, midnight, "", "a", 1, "3")
	s.move(t, noon, "a", "b", 1, "1")
	s.move(t, midnight.Add(24*time.Hour-time.Millisecond), "b", "", 1, "0.25")
	s.move(t, midnight.Add(24*time.Hour), "", "a", 2, "9")
	s.do(t, ledger.Movement{Transfers: []ledger.Transfer{ledger.New(noon, "test", "house", account("", 3),
		ledger.Account{Kind: ledger.Fee, Asset: 3}, amount.Must("1"))}}) // of no user
	first := balance.DayOf(noon)
	for _, tc := range []struct {
		from, to time.Time
		want     string
	}{
		{midnight, midnight.Add(48 * time.Hour), fmt.Sprintf("[{%d 1 4 1.25 0} {%d 2 9 0 0}]", first, first+1)},
		{midnight, midnight.Add(24 * time.Hour), fmt.Sprintf("[{%d 1 4 1.25 0}]", first)},
		{noon, noon.Add(time.Millisecond), fmt.Sprintf("[{%d 1 1 1 0}]", first)},
		{midnight.Add(48 * time.Hour), midnight.Add(72 * time.Hour), "[]"},
	} {
		got, err := s.Store.Moved(t.Context(), tc.from, tc.to)
		if storetest.Must(t, err); fmt.Sprint(got) != tc.want {
			t.Errorf("from %v: %v, want %s", tc.from, got, tc.want)
		}
	}
	for hours, want := range map[int]string{0: "0 true", 24: "1 true", 25: "0 false"} {
		day, ok, err := s.Store.Next(t.Context(), midnight.Add(time.Duration(hours)*time.Hour))
		if ok {
			day -= first
		}
		if storetest.Must(t, err); fmt.Sprint(day, ok) != want {
			t.Errorf("after %d hours: %d %v, want %s", hours, day, ok, want)
		}
	}
}

func day(n, asset int64, posted string) balance.Day {
	return balance.Day{Day: n, Asset: asset, In: amount.Must("1"), Out: amount.Must("2"), Posted: amount.Must(posted)}
}

func days(t *testing.T, s Site) {
	for asset := range int64(3) {
		s.move(t, noon, "", "a", asset+1, "1") // its asset exists
	}
	for _, some := range [][]balance.Day{{day(10, 1, "5"), day(10, 2, "-6.5")}, {day(12, 1, "7")}, {day(12, 1, "8")}} {
		storetest.Must(t, s.Commit.Commit(t.Context(), balance.Summed{Days: some})) // the last one comes too late
	}
	list := func(what string, got any, err error, want string) {
		t.Helper()
		if storetest.Must(t, err); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", what, got, want)
		}
	}
	spans, err := s.Store.Spans(t.Context())
	list("spans", spans, err, "[{1 10 12} {2 10 10}]")
	got, err := s.Store.Days(t.Context(), 10, 12, nil)
	list("all days", got, err, "[{10 1 1 2 5} {10 2 1 2 -6.5} {12 1 1 2 7}]")
	got, err = s.Store.Days(t.Context(), 11, 12, []int64{1, 2})
	list("later days", got, err, "[{12 1 1 2 7}]")
	got, err = s.Store.Days(t.Context(), 0, 99, []int64{})
	list("days of nothing", got, err, "[]")
	for before, want := range map[int64]string{10: "[]", 11: "[{10 1 1 2 5} {10 2 1 2 -6.5}]",
		13: "[{10 2 1 2 -6.5} {12 1 1 2 7}]"} {
		got, err = s.Store.Before(t.Context(), before)
		list(fmt.Sprint("before ", before), got, err, want)
	}
}

// Of concurrent writers of a day one wins, and none fails.
func atOnce(t *testing.T, s Site) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			storetest.Must(t, s.Commit.Commit(t.Context(), balance.Summed{Days: []balance.Day{day(1, 1, fmt.Sprint(i)),
				day(1, 2, fmt.Sprint(i))}}))
		})
	}
	all.Wait()
	got, err := s.Store.Days(t.Context(), 1, 1, nil)
	if storetest.Must(t, err); len(got) != 2 || got[0].Posted != got[1].Posted {
		t.Errorf("%v", got)
	}
}
