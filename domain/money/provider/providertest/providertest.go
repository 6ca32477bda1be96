// Package providertest is the test suite of the contract provider.Store.
package providertest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
)

// Run checks an implementation of provider.Store.
func Run(t *testing.T, open storetest.Open[provider.Store]) {
	storetest.Run(t, open, storetest.Cases[provider.Store]{
		"Latest":  latest,
		"Exact":   exact,
		"History": history,
		"At":      at,
		"Again":   again,
		"AtOnce":  atOnce,
		"Many":    many,
		"Purge":   purge,
	})
}

var slot = time.UnixMilli(1_767_225_600_000).UTC()

// arrive stores a snapshot: "BTC 1 0.5, ETH 2 0".
func arrive(t *testing.T, c commit.Committer, name, account string, slots int, balances string) {
	t.Helper()
	storetest.Must(t, c.Commit(t.Context(), snapshot(name, account, slots, balances)))
}

func snapshot(name, account string, slots int, balances string) provider.Arrived {
	w := provider.Arrived{Provider: name, Account: account, At: slot.Add(time.Duration(slots) * provider.Every)}
	for one := range strings.SplitSeq(balances, ", ") {
		if f := strings.Fields(one); len(f) == 3 {
			w.Balances = append(w.Balances, provider.Balance{Asset: f[0], Free: amount.Must(f[1]), Locked: amount.Must(f[2])})
		}
	}
	return w
}

func wants(t *testing.T, all []provider.Entry, err error, want string) {
	t.Helper()
	storetest.Must(t, err)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s@%d %s %v %v", e.Account, int(e.At.Sub(slot)/provider.Every), e.Asset, e.Free,
			e.Locked))
	}
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("\n got %s\nwant %s", s, want)
	}
}

func latest(t *testing.T, s provider.Store, c commit.Committer) {
	wantsLatest := func(name, account, asset, want string) {
		t.Helper()
		all, err := s.Latest(t.Context(), name, account, asset)
		wants(t, all, err, want)
	}
	wantsLatest("spot", "", "", "")
	arrive(t, c, "spot", "main", 0, "BTC 1 0.5, ETH 2 0")
	arrive(t, c, "spot", "main", 2, "XRP 3 0, BTC 7 0")
	arrive(t, c, "spot", "main", 1, "BTC 9 9") // a late snapshot is not the latest
	arrive(t, c, "spot", "cold", 0, "BTC 5 0")
	arrive(t, c, "spot", "empty", 0, "ETH 1 0")
	arrive(t, c, "spot", "empty", 1, "") // nothing is left
	arrive(t, c, "other", "main", 3, "BTC 8 8")
	wantsLatest("spot", "", "", "cold@0 BTC 5 0, main@2 BTC 7 0, main@2 XRP 3 0")
	wantsLatest("spot", "", "BTC", "cold@0 BTC 5 0, main@2 BTC 7 0")
	wantsLatest("spot", "main", "", "main@2 BTC 7 0, main@2 XRP 3 0")
	wantsLatest("spot", "main", "ETH", "")
	wantsLatest("spot", "empty", "", "")
	wantsLatest("spot", "none", "", "")
	wantsLatest("Spot", "", "", "")
}

func exact(t *testing.T, s provider.Store, c commit.Committer) {
	const most = "999999999999999999.999999999999999999"
	arrive(t, c, "spot", "main", 0, "BTC "+most+" 0.000000000000000001")
	all, err := s.Latest(t.Context(), "spot", "", "")
	wants(t, all, err, "main@0 BTC "+most+" 0.000000000000000001")
}

func history(t *testing.T, s provider.Store, c commit.Committer) {
	for i := range 4 {
		arrive(t, c, "spot", "b", i, fmt.Sprintf("BTC %d 0, ETH 9 0", i+1))
		arrive(t, c, "spot", "a", i, "BTC 5 0")
	}
	arrive(t, c, "other", "b", 1, "BTC 8 8")
	read := func(q provider.History, p page.Query[provider.Place]) page.Of[provider.Entry] {
		t.Helper()
		q.Provider, q.Asset = "spot", "BTC"
		got, err := s.History(t.Context(), q, p)
		storetest.Must(t, err)
		return got
	}
	of := func(q provider.History, want string) {
		t.Helper()
		wants(t, read(q, page.Query[provider.Place]{}).Records, nil, want)
	}
	of(provider.History{Account: "b"}, "b@3 BTC 4 0, b@2 BTC 3 0, b@1 BTC 2 0, b@0 BTC 1 0")
	span := provider.History{From: slot.Add(provider.Every), To: slot.Add(2 * provider.Every)}
	of(span, "b@2 BTC 3 0, a@2 BTC 5 0, b@1 BTC 2 0, a@1 BTC 5 0")
	span.Account = "a"
	of(span, "a@2 BTC 5 0, a@1 BTC 5 0")
	of(provider.History{Account: "b", From: slot.Add(time.Millisecond), To: slot.Add(2*provider.Every - time.Millisecond)},
		"b@1 BTC 2 0")
	of(provider.History{From: slot.Add(4 * provider.Every)}, "")
	first := read(provider.History{}, page.Query[provider.Place]{Limit: 3, Count: true})
	if !first.More || first.Total != 8 {
		t.Errorf("%+v", first)
	}
	after := first.Records[2].Mark()
	rest := read(provider.History{}, page.Query[provider.Place]{Limit: 9, After: &after})
	if wants(t, rest.Records, nil, "a@2 BTC 5 0, b@1 BTC 2 0, a@1 BTC 5 0, b@0 BTC 1 0, a@0 BTC 5 0"); rest.More {
		t.Error("more are promised")
	}
}

func at(t *testing.T, s provider.Store, c commit.Committer) {
	arrive(t, c, "spot", "b", 0, "ETH 1 0, BTC 2 0")
	arrive(t, c, "spot", "a", 0, "BTC 3 4")
	arrive(t, c, "spot", "a", 1, "")
	arrive(t, c, "other", "a", 2, "BTC 8 8")
	for i, want := range []struct {
		all   string
		found bool
	}{{"a@0 BTC 3 4, b@0 BTC 2 0, b@0 ETH 1 0", true}, {"", true}, {"", false}} {
		all, found, err := s.At(t.Context(), "spot", slot.Add(time.Duration(i)*provider.Every))
		if wants(t, all, err, want.all); found != want.found {
			t.Errorf("slot %d is there: %v", i, found)
		}
	}
}

// The first snapshot of a slot counts.
func again(t *testing.T, s provider.Store, c commit.Committer) {
	arrive(t, c, "spot", "main", 0, "BTC 1 0, ETH 1 0")
	arrive(t, c, "spot", "main", 0, "BTC 2 0, XRP 1 0")
	all, err := s.Latest(t.Context(), "spot", "", "")
	wants(t, all, err, "main@0 BTC 1 0, main@0 ETH 1 0")
}

// Of concurrent writers of a slot one wins completely.
func atOnce(t *testing.T, s provider.Store, c commit.Committer) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			n := fmt.Sprint(i%8 + 1)
			storetest.Must(t, c.Commit(t.Context(), snapshot("spot", "main", i/8, "BTC "+n+" 0, ETH "+n+" 0")))
		})
	}
	all.Wait()
	for i := range 2 {
		got, found, err := s.At(t.Context(), "spot", slot.Add(time.Duration(i)*provider.Every))
		storetest.Must(t, err)
		if !found || len(got) != 2 || got[0].Free != got[1].Free {
			t.Errorf("slot %d: %v", i, got)
		}
	}
}

func many(t *testing.T, s provider.Store, c commit.Committer) {
	var text []string
	for i := range 1201 {
		text = append(text, fmt.Sprintf("A%04d 1 0", i))
	}
	arrive(t, c, "spot", "main", 0, strings.Join(text, ", "))
	all, err := s.Latest(t.Context(), "spot", "", "")
	if storetest.Must(t, err); len(all) != len(text) || all[1200].Asset != "A1200" {
		t.Errorf("%d are kept", len(all))
	}
}

func purge(t *testing.T, s provider.Store, c commit.Committer) {
	for i := range 300 {
		arrive(t, c, "spot", "main", i, "BTC 1 0")
	}
	storetest.Must(t, s.Purge(t.Context(), slot.Add(298*provider.Every)))
	got, err := s.History(t.Context(), provider.History{Provider: "spot", Asset: "BTC"}, page.Query[provider.Place]{})
	wants(t, got.Records, err, "main@299 BTC 1 0, main@298 BTC 1 0")
}
