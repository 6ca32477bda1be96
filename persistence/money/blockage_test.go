package money_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/money/currency"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestBlockageStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) blockage.Store {
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			if all, err := money.NewCurrencies(db).Currencies(ctx, currency.Query{}); err != nil || len(all) > 0 {
				return err
			}
			return currency.Seed(ctx, money.NewCurrencies(db))
		}))
		storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1)))
		return money.NewBlockages(db)
	},
		storetest.Cases[blockage.Store]{"Closures": blockageClosures}, "blockage", "users")
}

var blockageAt = time.UnixMilli(1_700_000_000_000).UTC()

// sampleBlockage is a blockage of the first user of usertest, as read from the store.
func sampleBlockage(n int64) blockage.Blockage {
	return blockage.Blockage{ID: n, UserID: usertest.Sample(1).ID, CurrencyID: 1, TypeID: n,
		Amount: amount.Must(fmt.Sprint(n, ".000000000000000001")), Status: blockage.Active, Holds: 1, CreatedAt: blockageAt,
		Version: 1, CurrencyCode: "BTC", FullName: "Ayşe O'Neil ?"}
}

// A user has one active closure for each currency, even under concurrent calls.
func blockageClosures(t *testing.T, s blockage.Store, c commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
		b := sampleBlockage(int64(i + 1))
		b.Closure = true
		return c.Commit(t.Context(), blockage.Add{Blockage: b})
	})
	storetest.Equal(t, won, 1, "of 8 were added")
	other, ended := sampleBlockage(10), sampleBlockage(11)
	other.CurrencyID, other.Closure, ended.Closure, ended.Status = 2, true, true, blockage.Released
	storetest.Must(t, c.Commit(t.Context(), blockage.Add{Blockage: other}, blockage.Add{Blockage: ended},
		blockage.Add{Blockage: sampleBlockage(12)}))
	all, err := s.Closures(t.Context(), other.UserID)
	if storetest.Must(t, err); len(all) != 2 || all[0].ID != 10 || all[0].CurrencyCode != "ETH" {
		t.Errorf("%+v", all)
	}
}
