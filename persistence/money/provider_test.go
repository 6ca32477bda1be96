package money_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

func TestProviderStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) provider.Store { return money.NewProviders(db) },
		storetest.Cases[provider.Store]{
			"Latest":  providerLatest,
			"Exact":   providerExact,
			"History": providerHistory,
			"At":      providerAt,
			"Again":   providerAgain,
			"AtOnce":  providerAtOnce,
			"Purge":   providerPurge,
		}, "provider_balance", "provider_snapshot", "provider_account")
}

var providerSlot = time.UnixMilli(1_767_225_600_000).UTC()

// arriveSnapshot stores a snapshot: "BTC 1 0.5, ETH 2 0".
func arriveSnapshot(t *testing.T, c commit.Committer, name, account string, slots int, balances string) {
	t.Helper()
	storetest.Must(t, c.Commit(t.Context(), snapshotAt(name, account, slots, balances)))
}

func snapshotAt(name, account string, slots int, balances string) provider.Arrived {
	w := provider.Arrived{Provider: name, Account: account, At: providerSlot.Add(time.Duration(slots) * provider.Every)}
	for one := range strings.SplitSeq(balances, ", ") {
		if f := strings.Fields(one); len(f) == 3 {
			w.Balances = append(w.Balances, provider.Balance{Asset: f[0], Free: amount.Must(f[1]), Locked: amount.Must(f[2])})
		}
	}
	return w
}

func wantsEntries(t *testing.T, all []provider.Entry, err error, want string) {
	t.Helper()
	storetest.Must(t, err)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s@%d %s %v %v", e.Account, int(e.At.Sub(providerSlot)/provider.Every), e.Asset,
			e.Free, e.Locked))
	}
	storetest.Equal(t, strings.Join(got, ", "), want)
}

func providerLatest(t *testing.T, s provider.Store, c commit.Committer) {
	wantsLatest := func(name, account, asset, want string) {
		t.Helper()
		all, err := s.Latest(t.Context(), name, account, asset)
		wantsEntries(t, all, err, want)
	}
	wantsLatest("spot", "", "", "")
	arriveSnapshot(t, c, "spot", "main", 0, "BTC 1 0.5, ETH 2 0")
	arriveSnapshot(t, c, "spot", "main", 2, "XRP 3 0, BTC 7 0")
	arriveSnapshot(t, c, "spot", "main", 1, "BTC 9 9") // a late snapshot is not the latest
	arriveSnapshot(t, c, "spot", "cold", 0, "BTC 5 0")
	arriveSnapshot(t, c, "spot", "empty", 0, "ETH 1 0")
	arriveSnapshot(t, c, "spot", "empty", 1, "") // nothing is left
	arriveSnapshot(t, c, "other", "main", 3, "BTC 8 8")
	wantsLatest("spot", "", "", "cold@0 BTC 5 0, main@2 BTC 7 0, main@2 XRP 3 0")
	wantsLatest("spot", "", "BTC", "cold@0 BTC 5 0, main@2 BTC 7 0")
	wantsLatest("spot", "main", "", "main@2 BTC 7 0, main@2 XRP 3 0")
	wantsLatest("spot", "main", "ETH", "")
	wantsLatest("spot", "empty", "", "")
	wantsLatest("spot", "none", "", "")
	wantsLatest("Spot", "", "", "")
}

func providerExact(t *testing.T, s provider.Store, c commit.Committer) {
	const most = "999999999999999999.999999999999999999"
	arriveSnapshot(t, c, "spot", "main", 0, "BTC "+most+" 0.000000000000000001")
	all, err := s.Latest(t.Context(), "spot", "", "")
	wantsEntries(t, all, err, "main@0 BTC "+most+" 0.000000000000000001")
}

func providerHistory(t *testing.T, s provider.Store, c commit.Committer) {
	for i := range 4 {
		arriveSnapshot(t, c, "spot", "b", i, fmt.Sprintf("BTC %d 0, ETH 9 0", i+1))
		arriveSnapshot(t, c, "spot", "a", i, "BTC 5 0")
	}
	arriveSnapshot(t, c, "other", "b", 1, "BTC 8 8")
	read := func(q provider.History, p page.Query[provider.Place]) page.Of[provider.Entry] {
		t.Helper()
		q.Provider, q.Asset = "spot", "BTC"
		return storetest.Value(s.History(t.Context(), q, p))(t)
	}
	of := func(q provider.History, want string) {
		t.Helper()
		wantsEntries(t, read(q, page.Query[provider.Place]{}).Records, nil, want)
	}
	of(provider.History{Account: "b"}, "b@3 BTC 4 0, b@2 BTC 3 0, b@1 BTC 2 0, b@0 BTC 1 0")
	span := provider.History{From: providerSlot.Add(provider.Every), To: providerSlot.Add(2 * provider.Every)}
	of(span, "b@2 BTC 3 0, a@2 BTC 5 0, b@1 BTC 2 0, a@1 BTC 5 0")
	span.Account = "a"
	of(span, "a@2 BTC 5 0, a@1 BTC 5 0")
	of(provider.History{Account: "b", From: providerSlot.Add(time.Millisecond),
		To: providerSlot.Add(2*provider.Every - time.Millisecond)}, "b@1 BTC 2 0")
	of(provider.History{From: providerSlot.Add(4 * provider.Every)}, "")
	first := read(provider.History{}, page.Query[provider.Place]{Limit: 3, Count: true})
	if !first.More || first.Total != 8 {
		t.Errorf("%+v", first)
	}
	after := first.Records[2].Mark()
	rest := read(provider.History{}, page.Query[provider.Place]{Limit: 9, After: &after})
	if wantsEntries(t, rest.Records, nil, "a@2 BTC 5 0, b@1 BTC 2 0, a@1 BTC 5 0, b@0 BTC 1 0, a@0 BTC 5 0"); rest.More {
		t.Error("more are promised")
	}
}

func providerAt(t *testing.T, s provider.Store, c commit.Committer) {
	arriveSnapshot(t, c, "spot", "b", 0, "ETH 1 0, BTC 2 0")
	arriveSnapshot(t, c, "spot", "a", 0, "BTC 3 4")
	arriveSnapshot(t, c, "spot", "a", 1, "")
	arriveSnapshot(t, c, "other", "a", 2, "BTC 8 8")
	for i, want := range []struct {
		all   string
		found bool
	}{{"a@0 BTC 3 4, b@0 BTC 2 0, b@0 ETH 1 0", true}, {"", true}, {"", false}} {
		all, found, err := s.At(t.Context(), "spot", providerSlot.Add(time.Duration(i)*provider.Every))
		if wantsEntries(t, all, err, want.all); found != want.found {
			t.Errorf("slot %d is there: %v", i, found)
		}
	}
}

// The first snapshot of a slot counts.
func providerAgain(t *testing.T, s provider.Store, c commit.Committer) {
	arriveSnapshot(t, c, "spot", "main", 0, "BTC 1 0, ETH 1 0")
	arriveSnapshot(t, c, "spot", "main", 0, "BTC 2 0, XRP 1 0")
	all, err := s.Latest(t.Context(), "spot", "", "")
	wantsEntries(t, all, err, "main@0 BTC 1 0, main@0 ETH 1 0")
}

// Of concurrent writers of a slot one wins completely.
func providerAtOnce(t *testing.T, s provider.Store, c commit.Committer) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			n := fmt.Sprint(i%8 + 1)
			storetest.Must(t, c.Commit(t.Context(), snapshotAt("spot", "main", i/8, "BTC "+n+" 0, ETH "+n+" 0")))
		})
	}
	all.Wait()
	for i := range 2 {
		got, found, err := s.At(t.Context(), "spot", providerSlot.Add(time.Duration(i)*provider.Every))
		storetest.Must(t, err)
		if !found || len(got) != 2 || got[0].Free != got[1].Free {
			t.Errorf("slot %d: %v", i, got)
		}
	}
}

func providerPurge(t *testing.T, s provider.Store, c commit.Committer) {
	for i := range 300 {
		arriveSnapshot(t, c, "spot", "main", i, "BTC 1 0")
	}
	storetest.Must(t, s.Purge(t.Context(), providerSlot.Add(298*provider.Every)))
	got, err := s.History(t.Context(), provider.History{Provider: "spot", Asset: "BTC"}, page.Query[provider.Place]{})
	wantsEntries(t, got.Records, err, "main@299 BTC 1 0, main@298 BTC 1 0")
}

// The last snapshot, those of a range and the one at an instant are found by index, however many snapshots there are.
func TestSnapshotsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(5)
		listed := func(list record.Table[money.ProviderEntryRow, provider.Entry], p record.Part) *bun.SelectQuery {
			return list.Selected(db.Conn(t.Context()).NewSelect().Model((*money.ProviderEntryRow)(nil)), p)
		}
		pageOf := func(q provider.History) *bun.SelectQuery {
			p := page.Query[provider.Place]{After: &provider.Place{At: at, Account: "a"}, Limit: 10}
			return listed(money.ProviderEntries, record.PartOf(p, money.ProviderPlace, money.HistoryFilters(q)))
		}
		for name, c := range map[string]struct {
			query  *bun.SelectQuery
			index  string
			sorted bool // what is little is sorted afterwards
		}{
			"the last of all": {listed(money.ProviderAccounts, record.Part{Where: money.LatestFilters("p", "", "")}),
				"provider_account",
				true},
			"the last of one": {listed(money.ProviderAccounts, record.Part{Where: money.LatestFilters("p", "a", "X")}),
				"provider_account",
				true},
			"an instant": {listed(money.ProviderAccounts, record.Part{Where: money.AtFilters("p", at)}),
				"provider_snapshot_provider",
				true},
			"a range of all": {pageOf(provider.History{Provider: "p", Asset: "X", From: at, To: at}),
				"provider_snapshot_provider", false},
			"a range of one": {pageOf(provider.History{Provider: "p", Account: "a", Asset: "X", From: at}),
				"provider_snapshot", false},
			"what is too old": {db.Conn(t.Context()).NewSelect().Table("provider_snapshot").Column("id").
				Where("at < ?", 5).Limit(1), "provider_snapshot_at", false},
		} {
			plan := persistencetest.Explain(t, db, c.query)
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "Seq Scan") ||
				!c.sorted && (strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort")) {
				t.Errorf("%s:\n%s", name, plan)
			}
		}
	})
}
