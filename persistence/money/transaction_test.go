package money_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/money/transaction"
	"castellan/domain/money/transaction/transactiontest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

func TestTransactionStore(t *testing.T) {
	persistencetest.RunBoth(t, transactiontest.Run, func(db *persistence.DB) transactiontest.Stores {
		return transactiontest.Stores{Store: money.NewTransactions(db), Ledger: money.NewLedger(db)}
	}, "process", "withdrawal_queue", "withdrawal", "deposit")
}

// A page of what may have a million rows is read by an index.
func TestTransactionsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		of := func(fs []record.Filter) record.Part {
			return record.PartOf(page.Query[transaction.Place]{After: &transaction.Place{ID: "9"}, Limit: 10},
				money.TransactionOrder,
				fs)
		}
		all := func(row any) *bun.SelectQuery { return db.Conn(t.Context()).NewSelect().Model(row) }
		waits := func(q transaction.WaitingQuery) *bun.SelectQuery {
			return money.Deposits.Selected(all((*money.DepositRead)(nil)), of(money.WaitingFilters(q)))
		}
		queue := func(q transaction.QueueQuery) *bun.SelectQuery {
			return money.Entries.Selected(all((*money.EntryRead)(nil)), of(money.QueueFilters(q)))
		}
		text := new("x")
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string
		}{
			"own that wait":     {waits(transaction.WaitingQuery{UserID: "u"}), "deposit_waiting"},
			"for the treasury":  {waits(transaction.WaitingQuery{Treasury: true}), "deposit_status"},
			"of one":            {waits(transaction.WaitingQuery{UserID: "u", Treasury: true}), "deposit_"},
			"of a hash":         {waits(transaction.WaitingQuery{TxID: "x", Treasury: true}), "deposit_waiting_tx"},
			"to one's address":  {waits(transaction.WaitingQuery{ToAddress: "x", Treasury: true}), "deposit_waiting_address"},
			"queue":             {queue(transaction.QueueQuery{}), "withdrawal_queue"},
			"queue of a user":   {queue(transaction.QueueQuery{UserID: text}), "withdrawal_queue_user"},
			"of an asset":       {queue(transaction.QueueQuery{Assets: []int64{1}}), "withdrawal_queue_asset"},
			"of a status":       {queue(transaction.QueueQuery{Status: new(transaction.TimeOut)}), "withdrawal_queue_status"},
			"active":            {queue(transaction.QueueQuery{Active: new(true)}), "withdrawal_queue_active"},
			"final":             {queue(transaction.QueueQuery{Active: new(false)}), "withdrawal_queue_final"},
			"to an address":     {queue(transaction.QueueQuery{Address: text}), "withdrawal_queue_address"},
			"with a tag":        {queue(transaction.QueueQuery{AddressTag: text}), "withdrawal_queue_address_tag"},
			"by an external id": {queue(transaction.QueueQuery{ExternalID: text}), "withdrawal_queue_external"},
			"by an attempt":     {queue(transaction.QueueQuery{Attempt: text}), "withdrawal_queue_attempt"},
			"by a transaction":  {queue(transaction.QueueQuery{TxID: text}), "withdrawal_queue_tx"},
			"of a name":         {queue(transaction.QueueQuery{Name: text}), "withdrawal_queue"},
			"processes": {money.Processes.Selected(all((*money.ProcessRow)(nil)),
				of(money.ProcessFilters(transaction.ProcessQuery{UserID: "u", Assets: []int64{1, 2}}))), "process_user"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}
