package money

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/money/balance"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/persistence/record"
)

// This file exports internals to the tests of the package.
type (
	AssetDayRow      = assetDayRow
	BlockageRead     = blockageRead
	DepositRead      = depositRead
	EntryRead        = entryRead
	ProcessRow       = processRead
	ProviderEntryRow = providerEntryRow
)

var (
	AssetDays        = assetDays
	AtFilters        = atFilters
	BeforeFilters    = beforeFilters
	BlockageFilters  = blockageFilters
	BlockageOrder    = blockageOrder
	BlockagesTable   = blockages
	DayFilters       = dayFilters
	Deposits         = deposits
	Entries          = entries
	HistoryFilters   = historyFilters
	LatestFilters    = latestFilters
	MovedOf          = movedOf
	ProcessFilters   = processFilters
	Processes        = processes
	ProviderAccounts = providerAccounts
	ProviderEntries  = providerEntries
	ProviderPlace    = providerPlace
	QueueFilters     = queueFilters
	TransactionOrder = transactionOrder
	Transfers        = transfers
	WaitingFilters   = waitingFilters
)

// The queries whose plans the tests read.

// CountedText is the text of Counted without totals, and the number of its arguments.
func (s Transactions) CountedText(queries ...transaction.CountedQuery) (text string, args int) {
	c := newCounting(s.db.Postgres(), nil, queries, nil)
	q := c.query()
	return "SELECT " + q.Columns + " FROM " + q.From + " ORDER BY " + q.Order, len(c.args)
}

func (s Rates) LastQuery(ctx context.Context, until time.Time, pairs []rate.Pair) *bun.SelectQuery {
	return s.last(ctx, until, pairs)
}

func (s Balances) SumsQuery(ctx context.Context, q balance.Query) *bun.SelectQuery {
	return s.sums(ctx, q)
}

func (s Balances) MovedQuery(ctx context.Context, after, before string) *bun.SelectQuery {
	return s.moved(ctx, after, before)
}

func (s Balances) SpansQuery(ctx context.Context) *bun.SelectQuery { return s.spans(ctx) }

func (s Transactions) ReceivedFilters(asset int64, txID string, to ...string) (usual, unusual []record.Filter) {
	return s.receivedFilters(asset, txID, to...)
}

func (s Transactions) Candidates(ctx context.Context, most int) (several, unusual *bun.SelectQuery) {
	return s.candidates(ctx, most)
}
