package transaction

import (
	"context"
	"time"

	"castellan/domain/kit/page"
	"castellan/domain/money/ledger"
)

// Store reads transactions. They are written by AddDeposit, SetDeposit,
// AddWithdrawal, SetWithdrawal, AddQueued, SetQueued, SetDesk and AddProcess. Every method
// joins the transaction that its context carries. It is safe for concurrent use and
// passes transactiontest.Run.
type Store interface {
	// Deposits returns those of some ids that are there, in any order.
	Deposits(ctx context.Context, ids ...string) ([]Deposit, error)
	// Holder reads the account to which an address was given (AddAddress).
	// RECORD_NOT_FOUND.
	Holder(ctx context.Context, address string) (ledger.Account, error)
	// Waiting lists deposits that wait, newest first.
	Waiting(ctx context.Context, q WaitingQuery, p page.Query[Place]) (page.Of[Deposit], error)
	// Withdrawal and Queued read one row. RECORD_NOT_FOUND.
	Withdrawal(ctx context.Context, id string) (Withdrawal, error)
	Queued(ctx context.Context, id string) (Queued, error)
	// Desk returns how many withdrawals a user has requested, which is the version that
	// SetDesk fences.
	Desk(ctx context.Context, userID string) (version int64, err error)
	// Queue lists entries of the queue of withdrawals, newest first, by one statement.
	Queue(ctx context.Context, q QueueQuery, p page.Query[Place]) (page.Of[Entry], error)
	// Processes lists the processes of a user, newest first.
	Processes(ctx context.Context, q ProcessQuery, p page.Query[Place]) (page.Of[Process], error)
}

// Place is where a row stands in a list, newest first.
type Place struct{ ID string }

func (d Deposit) Mark() Place { return Place{d.ID} }

func (q Queued) Mark() Place { return Place{q.ID} }

func (p Process) Mark() Place { return Place{p.ID} }

// WaitingQuery selects deposits that wait; what is zero selects nothing out.
type WaitingQuery struct {
	UserID          string
	TxID, ToAddress string
	Treasury        bool // only those that wait for the treasury
}

// Span is a time from From to To, both included; zero: without that end.
type Span struct{ From, To time.Time }

// QueueQuery selects entries of the queue; nil and zero: any.
type QueueQuery struct {
	ID, UserID, Address, AddressTag, ExternalID, Attempt, TxID *string
	Status                                                     *QueueStatus
	Active                                                     *bool   // whether the status is not final
	Assets                                                     []int64 // nil: any
	Name                                                       *string // a part of the user's folded name
	Span
}

// ProcessQuery selects processes of one user; nil and zero: any.
type ProcessQuery struct {
	UserID string
	Assets []int64
	Span
}
