package persistence

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/page"
	"castellan/domain/transaction"
	"castellan/domain/transaction/transactiontest"
	"castellan/persistence/record"
)

func TestTransactionStore(t *testing.T) {
	suite(t, transactiontest.Run, func(db *DB) transactiontest.Stores {
		return transactiontest.Stores{Store: NewTransactions(db), Ledger: NewLedger(db)}
	}, "process", "withdrawal_queue", "withdrawal", "deposit")
}

// A page of what may have a million rows is read by an index.
func TestTransactionsAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		of := func(fs []record.Filter) record.Part {
			return record.PartOf(page.Query[transaction.Place]{After: &transaction.Place{ID: "9"}, Limit: 10}, transactionOrder,
				fs)
		}
		all := func(row any) *bun.SelectQuery { return db.Conn(t.Context()).NewSelect().Model(row) }
		waits := func(q transaction.WaitingQuery) *bun.SelectQuery {
			return deposits.Selected(all((*depositRead)(nil)), of(waitingFilters(q)))
		}
		queue := func(q transaction.QueueQuery) *bun.SelectQuery {
			return entries.Selected(all((*entryRead)(nil)), of(queueFilters(q)))
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
			"processes": {processes.Selected(all((*processRow)(nil)),
				of(processFilters(transaction.ProcessQuery{UserID: "u", Assets: []int64{1, 2}}))), "process_user"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
	})
}
