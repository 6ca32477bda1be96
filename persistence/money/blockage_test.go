package money_test

import (
	"context"
	"testing"

	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/money/blockage/blockagetest"
	"castellan/domain/money/currency"
	"castellan/domain/people/standing"
	"castellan/domain/people/standing/standingtest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestBlockageStore(t *testing.T) {
	persistencetest.RunBoth(t, blockagetest.Run, func(db *persistence.DB) blockage.Store {
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			if all, err := money.NewCurrencies(db).Currencies(ctx, currency.Query{}); err != nil || len(all) > 0 {
				return err
			}
			return currency.Seed(ctx, money.NewCurrencies(db))
		}))
		storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1)))
		return money.NewBlockages(db)
	}, "blockage", "users")
}

func TestStandingStore(t *testing.T) {
	persistencetest.RunBoth(t, standingtest.Run,
		func(db *persistence.DB) standing.Store { return people.NewStandings(db) },
		"user_standing", "aml_finding", "users")
}
