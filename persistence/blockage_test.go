package persistence

import (
	"context"
	"testing"

	"castellan/domain/blockage"
	"castellan/domain/blockage/blockagetest"
	"castellan/domain/currency"
	"castellan/domain/standing"
	"castellan/domain/standing/standingtest"
	"castellan/domain/storetest"
	"castellan/domain/user/usertest"
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
