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
			"AtOnce": providerAtOnce,
			"Purge":  providerPurge,
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
