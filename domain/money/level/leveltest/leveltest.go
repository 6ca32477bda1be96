// Package leveltest tests the contract of level.Store, with the levels of a new installation.
package leveltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
)

// Run checks an implementation of level.Store.
func Run(t *testing.T, open storetest.Open[level.Store]) {
	storetest.Run(t, open, storetest.Cases[level.Store]{"List": list, "Add": add, "Change": change,
		"RaceOfAdds": raceOfAdds, "RaceOfChanges": raceOfChanges})
}

func list(t *testing.T, s level.Store, _ commit.Committer) {
	all, err := s.List(t.Context(), level.Query{})
	storetest.Must(t, err)
	if len(all) != 4 || all[0].ID != 0 || all[0].Limits != (level.Limits{}) ||
		!slices.IsSortedFunc(all, func(a, b level.Level) int { return int(a.ID - b.ID) }) {
		t.Fatalf("%+v", all)
	}
	storetest.Same(t, all[1], level.Level{ID: 1, Label: "Confirmed", Limits: level.Limits{
		SendTryDaily: amount.Must("50000"), SendCryptoDaily: amount.Must("50000"),
		SendTryMonthly: amount.Must("500000"), SendCryptoMonthly: amount.Must("500000"),
		ReceiveTryDaily: amount.Must("100000"), ReceiveCryptoDaily: amount.Must("100000")}})
	for special, want := range map[bool][]level.Level{false: all[:3], true: all[3:]} {
		got, err := s.List(t.Context(), level.Query{Special: &special})
		storetest.Must(t, err)
		storetest.Same(t, got, want)
	}
}

var gold = level.Level{ID: 5, Label: "Gold", Special: true, Limits: level.Limits{
	SendTryDaily: amount.Must("1.5"), SendCryptoDaily: amount.Must("2"), SendTryMonthly: amount.Must("3"),
	SendCryptoMonthly: amount.Must("4"), ReceiveTryDaily: amount.Must("5"), ReceiveCryptoDaily: amount.Must("6"),
	ReceiveTryMonthly: new(amount.Must("7"))}}

func find(t *testing.T, s level.Store, id int64) level.Level {
	t.Helper()
	all, err := s.List(t.Context(), level.Query{})
	storetest.Must(t, err)
	i := slices.IndexFunc(all, func(l level.Level) bool { return l.ID == id })
	if i < 0 {
		t.Fatalf("no level %d in %+v", id, all)
	}
	return all[i]
}

func add(t *testing.T, s level.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), gold))
	storetest.Same(t, find(t, s, 5), gold)
	storetest.Wants(t, s.Add(t.Context(), level.Level{ID: 5, Label: "Other"}), fault.RecordAlreadyExist)
	storetest.Wants(t, s.Add(t.Context(), level.Level{ID: 6, Label: "Gold"}), fault.RecordAlreadyExist)
	storetest.Wants(t, s.Add(t.Context(), level.Level{ID: 0, Label: "Zero"}), fault.RecordAlreadyExist)
	storetest.Same(t, find(t, s, 5), gold)
}

func change(t *testing.T, s level.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), gold))
	next := gold
	next.Label, next.Special, next.ReceiveTryMonthly = "Golden", false, nil
	next.ReceiveCryptoMonthly = new(amount.Must("8"))
	storetest.Must(t, s.Change(t.Context(), 5, func(l level.Level) (level.Level, error) {
		storetest.Same(t, l, gold)
		return next, nil
	}))
	storetest.Same(t, find(t, s, 5), next)
	refused := errors.New("no")
	if err := s.Change(t.Context(), 5, func(l level.Level) (level.Level, error) { return gold, refused }); !errors.Is(err,
		refused) {
		t.Error(err)
	}
	taken := func(l level.Level) (level.Level, error) { l.Label = "Confirmed"; return l, nil }
	storetest.Wants(t, s.Change(t.Context(), 5, taken), fault.RecordAlreadyExist)
	storetest.Wants(t, s.Change(t.Context(), 6, taken), fault.RecordNotFound)
	storetest.Same(t, find(t, s, 5), next)
}

func raceOfAdds(t *testing.T, s level.Store, _ commit.Committer) {
	if won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
		return s.Add(t.Context(), level.Level{ID: 5, Label: fmt.Sprint("Gold ", i)})
	}); won != 1 {
		t.Errorf("%d callers added level 5", won)
	}
}

// No concurrent change is lost.
func raceOfChanges(t *testing.T, s level.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), level.Level{ID: 5, Label: "Gold"}))
	const n = 8
	done := make(chan error, n)
	for range n {
		go func() {
			done <- s.Change(t.Context(), 5, func(l level.Level) (_ level.Level, err error) {
				l.SendTryDaily, err = l.SendTryDaily.Add(amount.Must("1"))
				return l, err
			})
		}()
	}
	for range n {
		storetest.Must(t, <-done)
	}
	storetest.Same(t, find(t, s, 5).SendTryDaily, amount.Must(fmt.Sprint(n)))
}
