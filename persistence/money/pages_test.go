package money_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/money/blockage"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfMoneyAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		blocked := func(q blockage.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[blockage.Place]{After: &blockage.Place{ID: 9}, Limit: 10}, money.BlockageOrder,
				money.BlockageFilters(q))
			return money.BlockagesTable.Selected(db.Conn(t.Context()).NewSelect().Model((*money.BlockageRead)(nil)), p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"blockages":             {blocked(blockage.Query{}), "b"},
			"blockages of one":      {blocked(blockage.Query{UserID: new("u")}), "blockage_user"},
			"blockages of a code":   {blocked(blockage.Query{CurrencyID: new(int64(1))}), "blockage_currency"},
			"blockages of a type":   {blocked(blockage.Query{TypeIDs: []int64{1}}), "blockage_type"},
			"blockages of a status": {blocked(blockage.Query{Status: new(blockage.Active)}), "blockage_status"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		money.NewAccounting(db), money.NewAddressBooks(db), money.NewBalances(db), money.NewBlockages(db),
		money.NewCurrencies(db), money.NewLedger(db), money.NewLevels(db), money.NewLimits(db),
		money.NewProviders(db), money.NewRates(db), money.NewTransactions(db))
}
