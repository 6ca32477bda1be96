package money_test

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
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
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
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		s, at, ctx := money.NewProviders(db), time.UnixMilli(5), r.Context()
		wants := func(index string, sorted bool, err error) { // what is little is sorted afterwards
			r.Helper()
			plan := strings.ReplaceAll(r.Plan(err), "SCAN CONSTANT ROW", "")
			if !strings.Contains(plan, index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "Seq Scan") ||
				!sorted && (strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort")) {
				r.Errorf("%s is not used:\n%s", index, plan)
			}
		}
		wants("provider_account_", true, storetest.Err(s.Latest(ctx, "p", "", "")))
		wants("provider_account_", true, storetest.Err(s.Latest(ctx, "p", "a", "X")))
		_, _, err := s.At(ctx, "p", at)
		wants("provider_snapshot_provider", true, err)
		from := page.Query[provider.Place]{After: &provider.Place{At: at, Account: "a"}, Limit: 10}
		wants("provider_snapshot_provider", false,
			storetest.Err(s.History(ctx, provider.History{Provider: "p", Asset: "X", From: at, To: at}, from)))
		wants("provider_snapshot_", false,
			storetest.Err(s.History(ctx, provider.History{Provider: "p", Account: "a", Asset: "X", From: at}, from)))
		var ids []int64 // as Purge selects them
		wants("provider_snapshot_at", false, db.Conn(ctx).NewSelect().Table("provider_snapshot").Column("id").
			Where("at < ?", 5).Limit(1).Scan(ctx, &ids))
	})
}
