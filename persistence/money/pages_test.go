package money_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list. The last page costs as much as the first.
func TestPagesOfMoneyAreFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		from := page.Query[blockage.Place]{After: &blockage.Place{ID: 9}, Limit: 10}
		// The indexes are those of SQLite; PostgreSQL may name the primary key in another way.
		for index, q := range map[string]blockage.Query{"b": {}, "blockage_user": {UserID: new("u")},
			"blockage_currency": {CurrencyID: new(int64(1))}, "blockage_type": {TypeIDs: []int64{1}},
			"blockage_status": {Status: new(blockage.Active)}} {
			r.Index(index, storetest.Err(money.NewBlockages(db).List(r.Context(), q, from)))
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

// The backlog of deposits has those that wait for the treasury, and that of withdrawals has the active ones.
func TestBacklogsOfMoney(t *testing.T) {
	db := persistencetest.SQLite(t)
	for i, status := range []transaction.Status{transaction.WaitingTreasury, -99, transaction.WaitingTreasury} {
		persistencetest.Exec(t, db, "INSERT INTO deposit (id, user_id, asset_id, hi, lo, status, tx_id, to_address, "+
			"sender_info, at, version) VALUES (?, 'u', 1, 1, 0, ?, '', '', '', ?, 1)", fmt.Sprint("d", i), int(status), 10+i)
	}
	for i, status := range []transaction.QueueStatus{transaction.QueueSuccess, transaction.QueueWaiting,
		transaction.QueueFailed, transaction.QueueReady} {
		books(t, db, bookedDay.Add(time.Duration(i)*time.Hour), "pay", owned("", 1), owned("u", 1), "1")
		persistencetest.Exec(t, db, "INSERT INTO withdrawal (id, user_id, asset_id, hi, lo, fee_hi, fee_lo, status, "+
			"to_address, transfer_id, at, version) SELECT ?, 'u', 1, 1, 0, 0, 0, 0, '', MAX(id), 1, 1 FROM transfer",
			fmt.Sprint("w", i))
		persistencetest.Exec(t, db, "INSERT INTO withdrawal_queue (id, user_id, asset_id, status, address, address_tag, "+
			"external_id, attempt_identifier, tx_id, own_fee, fee_hi, fee_lo, reason, at, version) VALUES (?, 'u', 1, ?, '', "+
			"'', '', '', '', 0, 0, 0, '', ?, 1)", fmt.Sprint("w", i), int(status), 20+i)
	}
	backlog := func(query func(context.Context, *persistence.DB, int) *bun.SelectQuery, most int) page.Backlog {
		t.Helper()
		return storetest.Value(record.ReadBacklog(t.Context(), db, most, query(t.Context(), db, most)))(t)
	}
	for name, c := range map[string]struct {
		query  func(context.Context, *persistence.DB, int) *bun.SelectQuery
		oldest int64
	}{"deposits": {money.DepositBacklog, 10}, "withdrawals": {money.WithdrawalBacklog, 21}} {
		if got := backlog(c.query, 2); got.Count != 2 || got.More || got.Oldest.UnixMilli() != c.oldest {
			t.Errorf("%s: %+v", name, got)
		}
		if got := backlog(c.query, 1); got.Count != 1 || !got.More {
			t.Errorf("%s, at most 1: %+v", name, got)
		}
	}
}

// A stored account whose id cannot be read is an error, and never another account.
func TestDamagedAccounts(t *testing.T) {
	for _, id := range []string{"user", "user/x/u", "user/1"} {
		db := persistencetest.SQLite(t)
		books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "1")
		persistencetest.Exec(t, db, "INSERT INTO account (id, kind, owner, asset_id, bounded) "+
			"VALUES (?, 'user', 'v', 1, 1)", id)
		persistencetest.Exec(t, db, "INSERT INTO transfer SELECT 'ZZZ', group_id, kind, 'x', digest, asset_id, unit, "+
			"debit_id, ?, hi, lo, reverses, reason, actor_id, at, effective_at, NULL, NULL FROM transfer LIMIT 1", id)
		storetest.Fails(t, storetest.Err(money.NewLedger(db).ByRef(t.Context(), "pay", "x")), `is called "`+id+`"`)
	}
}
