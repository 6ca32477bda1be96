package money_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/page"
	"castellan/domain/money/provider"
	"castellan/domain/money/provider/providertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"

	"github.com/uptrace/bun"
)

func TestProviderStore(t *testing.T) {
	persistencetest.RunBoth(t, providertest.Run, func(db *persistence.DB) provider.Store { return money.NewProviders(db) },
		"provider_balance",
		"provider_snapshot", "provider_account")
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
