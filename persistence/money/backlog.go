package money

import (
	"context"

	"castellan/domain/kit/page"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
)

// DepositBacklog counts the deposits pending treasury approval, up to most.
func DepositBacklog(ctx context.Context, db *engine.DB, most int) (page.Backlog, error) {
	return deposits.Backlog(ctx, db, most, "at", waitingFilters(transaction.WaitingQuery{Treasury: true})...)
}

// WithdrawalBacklog counts the active withdrawals of the queue, up to most.
func WithdrawalBacklog(ctx context.Context, db *engine.DB, most int) (page.Backlog, error) {
	return queued.Backlog(ctx, db, most, "at", queueFilters(transaction.QueueQuery{Active: new(true)})...)
}
