package persistence

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
)

func TestBlockageStore(t *testing.T) {
	suite(t, blockagetest.Run, func(db *DB) blockage.Store {
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			if all, err := NewCurrencies(db).Currencies(ctx, currency.Query{}); err != nil || len(all) > 0 {
				return err
			}
			return currency.Seed(ctx, NewCurrencies(db))
		}))
		storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1)))
		return NewBlockages(db)
	}, "blockage", "users")
}

func TestStandingStore(t *testing.T) {
	suite(t, standingtest.Run, func(db *DB) standing.Store { return NewStandings(db) },
		"user_standing", "aml_finding", "users")
}
