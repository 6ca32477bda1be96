package transaction

import (
	"context"
	"time"

	"castellan/domain/kit/page"
	"castellan/domain/money/ledger"
)

// Store reads transactions. AddDeposit, SetDeposit, AddWithdrawal, SetWithdrawal, AddQueued, SetQueued, SetDesk and
// AddProcess write them. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Deposits returns the existing deposits among ids, in any order.
	Deposits(ctx context.Context, ids ...string) ([]Deposit, error)
	// Received returns the reported deposits of an asset that may be transfers of a transaction to one of the addresses;
	// none: to any. It finds those that any program stored, in every spelling (address.Canonical). It may return others,
	// too.
	Received(ctx context.Context, asset int64, txID string, toAddresses ...string) ([]Deposit, error)
	// Holder reads the account to which an address was assigned (AddAddress). RECORD_NOT_FOUND.
	Holder(ctx context.Context, address string) (ledger.Account, error)
	// Waiting lists waiting deposits, newest first.
	Waiting(ctx context.Context, q WaitingQuery, p page.Query[Place]) (page.Of[Deposit], error)
	// Withdrawal and Queued read one row. RECORD_NOT_FOUND.
	Withdrawal(ctx context.Context, id string) (Withdrawal, error)
	Queued(ctx context.Context, id string) (Queued, error)
	// Desk returns how many withdrawals a user has requested: the version that SetDesk fences.
	Desk(ctx context.Context, userID string) (version int64, err error)
	// Restored reports whether a restore waits for its comparison with the wallet, and whether the entry of the queue
	// does.
	Restored(ctx context.Context, id string) (open, waits bool, err error)
	// Queue lists entries of the queue of withdrawals, newest first, in one statement.
	Queue(ctx context.Context, q QueueQuery, p page.Query[Place]) (page.Of[Entry], error)
	// Processes lists the processes of a user, newest first.
	Processes(ctx context.Context, q ProcessQuery, p page.Query[Place]) (page.Of[Process], error)
}

// Place is the position of a row in a list, newest first.
type Place struct{ ID string }

func (d Deposit) Mark() Place { return Place{d.ID} }

func (q Queued) Mark() Place { return Place{q.ID} }

func (p Process) Mark() Place { return Place{p.ID} }

// WaitingQuery selects waiting deposits; a zero field does not filter.
type WaitingQuery struct {
	UserID          string
	TxID, ToAddress string
	Treasury        bool // only those that wait for the treasury
}

// Span is a time range, both ends included; a zero end is open.
type Span struct{ From, To time.Time }

// QueueQuery selects entries of the queue; a nil or zero field does not filter.
type QueueQuery struct {
	ID, UserID, Address, AddressTag, ExternalID, Attempt, TxID *string
	Status                                                     *QueueStatus
	Active                                                     *bool   // whether the status is not final
	Assets                                                     []int64 // nil: any
	Name                                                       *string // a part of the user's folded name
	Span
}

// ProcessQuery selects processes of one user; a nil or zero field does not filter.
type ProcessQuery struct {
	UserID string
	Assets []int64
	Span
}
