package money_test

import (
	"strings"
	"testing"

	"castellan/domain/money/balance"
	"castellan/domain/money/balance/balancetest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"

	"github.com/uptrace/bun"
)

func TestBalanceStore(t *testing.T) {
	for name, test := range balancetest.Cases {
		t.Run(name, func(t *testing.T) {
			persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
				test(t, balancetest.Site{Store: money.NewBalances(db), Ledger: money.NewLedger(db), Commit: db})
			})
		})
	}
}

// Sums of a user, movements of a period and the days of assets are found by index, however many movements there are.
func TestBalancesAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := money.NewBalances(db), t.Context()
		days := func(fs []record.Filter) *bun.SelectQuery {
			return money.AssetDays.Selected(db.Conn(ctx).NewSelect().Model((*money.AssetDayRow)(nil)), record.Part{Where: fs})
		}
		for name, c := range map[string]struct {
			query            *bun.SelectQuery
			sqlite, postgres string
		}{
			"what a user has": {s.SumsQuery(ctx, balance.Query{UserID: new("u")}), "sqlite_autoindex_account_2",
				"account_kind_owner_asset_id_key"},
			"an asset": {s.SumsQuery(ctx, balance.Query{Assets: []int64{1}}), "account_asset", "Index Scan using account_"},
			"a period": {s.MovedQuery(ctx, "0", "9"), "sqlite_autoindex_transfer_1",
				"Index Scan using transfer_"},
			"days":           {days(money.DayFilters(1, 2, nil)), "sqlite_autoindex_asset_day_1", "asset_day_pkey"},
			"days before":    {days(money.BeforeFilters(1)), "asset_day_asset (asset_id=? AND day<?)", "asset_day_asset"},
			"first and last": {s.SpansQuery(ctx), "asset_day_asset (asset_id=?)", "asset_day_asset"},
		} {
			plan, index := persistencetest.Explain(t, db, c.query), c.sqlite
			if db.Postgres() {
				index = c.postgres
			}
			for _, whole := range []string{"SCAN d\n", "SCAN b\n", "SCAN transfer", "Seq Scan on asset_day",
				"Seq Scan on transfer", "Seq Scan on balance"} {
				if strings.Contains(plan+"\n", whole) {
					t.Errorf("%s: reads a whole table:\n%s", name, plan)
				}
			}
			if !strings.Contains(plan, index) {
				t.Errorf("%s: the plan does not use %s:\n%s", name, index, plan)
			}
		}
	})
}
