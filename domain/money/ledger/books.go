package ledger

import (
	"context"

	"castellan/domain/kit/amount"
)

// Books reads the whole ledger for verification. Each method returns the next page after a row, in the order of its
// key; an empty page is the end. The zero value of the key sorts before every row.
type Books interface {
	// Snapshot runs fn with a context in which the other methods read one consistent state.
	Snapshot(ctx context.Context, fn func(ctx context.Context) error) error
	// Transfers lists all transfers, by id.
	Transfers(ctx context.Context, after Sealed) ([]Sealed, error)
	// Audited lists the audit rows of transfers, by the id of the transfer.
	Audited(ctx context.Context, after Seal) ([]Seal, error)
	// Debits and Credits list the sides of all transfers, by account and id.
	Debits(ctx context.Context, after Entry) ([]Entry, error)
	Credits(ctx context.Context, after Entry) ([]Entry, error)
	// Lines lists the balances of all accounts, by the id of the account.
	Lines(ctx context.Context, after Line) ([]Line, error)
	// Active lists the active holds, by account and id.
	Active(ctx context.Context, after Entry) ([]Entry, error)
	// Days lists the closed days, by account and day.
	Days(ctx context.Context, after Day) ([]Day, error)
	// Endings lists all holds, by id.
	Endings(ctx context.Context, after Ending) ([]Ending, error)
	// LastDay returns the last closed day of any account; ok is false if there is none.
	LastDay(ctx context.Context) (day int64, ok bool, err error)
}

// Sealed is a transfer with the digest stored beside it.
type Sealed struct {
	Content
	Sum []byte
}

// Seal is the digest of a transfer in the audit trail.
type Seal struct{ ID, Digest string }

// Entry is a transfer, or a hold, seen from one account.
type Entry struct {
	Account, ID string
	Seq         int64
	Amount      amount.Amount
}

// Ending is the outcome of a hold.
type Ending struct {
	ID, Account string
	State       State
	Debited     string // the account that its transfer debits; "" for none
}

// Line is a balance with the id of its account; Unit is not read.
type Line struct {
	ID string
	Balance
}

// reader is what the streams of one verification have in common. err is the first failure of a read: then the streams
// end, and a verdict on them has no meaning.
type reader struct {
	ctx context.Context
	err error
}

// stream is a sequence of rows that is read page by page, so that memory use does not depend on its length.
type stream[T any] struct {
	*reader
	next  func(ctx context.Context, after T) ([]T, error)
	page  []T
	last  T
	ended bool
}

// peek returns the next row; nil at the end, and after a failure of any stream of the reader.
func (s *stream[T]) peek() *T {
	if len(s.page) == 0 && !s.ended && s.err == nil {
		if s.err = s.ctx.Err(); s.err == nil { // a node that shuts down does not wait for a verification
			s.page, s.err = s.next(s.ctx, s.last)
		}
		if s.ended = len(s.page) == 0; !s.ended {
			s.last = s.page[len(s.page)-1]
		}
	}
	if s.ended || s.err != nil {
		return nil
	}
	return &s.page[0]
}

func (s *stream[T]) take() { s.page = s.page[1:] }
