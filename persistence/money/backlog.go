package money

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
)

// DepositBacklog is the query of the backlog of the deposits pending treasury approval; see record.Table.Backlog.
func DepositBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return deposits.Backlog(ctx, db, most, "at", waitingFilters(transaction.WaitingQuery{Treasury: true})...)
}

// WithdrawalBacklog is the query of the backlog of the active withdrawals of the queue; see record.Table.Backlog.
func WithdrawalBacklog(ctx context.Context, db *engine.DB, most int) *bun.SelectQuery {
	return queued.Backlog(ctx, db, most, "at", queueFilters(transaction.QueueQuery{Active: new(true)})...)
}
