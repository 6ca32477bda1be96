// Package leveltest is the contract of level.Store as tests, over the levels of a
// new installation.
package leveltest

import (
	"slices"
	"testing"

	"castellan/domain/amount"
	"castellan/domain/commit"
	"castellan/domain/level"
	"castellan/domain/storetest"
)

// Run checks an implementation of level.Store.
func Run(t *testing.T, open storetest.Open[level.Store]) {
	storetest.Run(t, open, storetest.Cases[level.Store]{"List": list})
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
