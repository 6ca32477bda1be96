package money_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/money/limit/limittest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestLimitStore(t *testing.T) {
	persistencetest.RunBoth(t, limittest.Run, func(db *persistence.DB) limittest.Stores {
		return limittest.Stores{Store: money.NewLimits(db), Ledger: money.NewLedger(db)}
	})
}

// The sums are read from two ranges of an index that holds all summed columns.
func TestMovedIsFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		at := time.UnixMilli(1_700_000_000_000)
		plan := persistencetest.Explain(t, db, money.MovedOf(db.Conn(t.Context()), "u1", at, at))
		for _, index := range []string{"deposit_moved", "withdrawal_moved", "withdrawal_waits", "transfer_reverses"} {
			if !strings.Contains(plan, index) {
				t.Errorf("the plan does not use %s:\n%s", index, plan)
			}
		}
		for _, table := range []string{"SCAN deposit", "SCAN withdrawal", "Seq Scan"} {
			if strings.Contains(plan, table) {
				t.Errorf("the plan reads a whole table:\n%s", plan)
			}
		}
	})
}

// A level may have limits of a month for what is received (D-USR-09).
func TestLevelWithLimitsOfAMonth(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		persistencetest.Exec(t, db, `INSERT INTO user_level (id, label, special, limits) VALUES (3, 'Monthly', FALSE,
			'{"receiveLimitTRYDaily":7,"receiveLimitTRYMonthly":70.5}')`)
		all, err := money.NewLevels(db).List(t.Context(), level.Query{Special: new(false)})
		storetest.Must(t, err)
		storetest.Same(t, all[len(all)-1], level.Level{ID: 3, Label: "Monthly", Limits: level.Limits{
			ReceiveTryDaily: amount.Must("7"), ReceiveTryMonthly: new(amount.Must("70.5"))}})
	})
}
