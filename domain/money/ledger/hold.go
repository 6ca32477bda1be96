package ledger

import (
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
)

type State string

// The states. A hold leaves Active once.
const (
	Active   State = "active"
	Released State = "released" // the amount is free again
	Settled  State = "settled"  // a transfer took the amount
)

// Hold locks an amount of a user's account.
type Hold struct {
	ID      string
	Account Account
	// Source and Ref identify a hold, which counts once: a withdrawal's id in its queue, a blockage's number.
	Source, Ref string
	Type        string // the purpose, such as "withdrawal"
	Amount      amount.Amount
	State       State
	Transfer    string // the transfer that settled it; "" for none
	Version     int64
	// Beyond allows the hold to exceed the available balance: a blockage also holds future funds (D-BLK-03). It is not
	// stored.
	Beyond bool
}

// NewHold returns a hold on an account of a user.
func NewHold(now time.Time, source, ref, kind string, of Account, a amount.Amount) Hold {
	return Hold{ID: id.New(now), Account: of, Source: source, Ref: ref, Type: kind, Amount: a, State: Active, Version: 1}
}

// ended returns the hold as released, or as settled by a transfer. ErrEnded.
func (h Hold) ended(by string) (Hold, error) {
	if h.State != Active {
		return h, ErrEnded
	}
	h.State, h.Transfer = Released, by
	if by != "" {
		h.State = Settled
	}
	return h, nil
}

// same reports whether h requests the same hold as o.
func (h Hold) same(o Hold) bool {
	return h.Source == o.Source && h.Ref == o.Ref && h.Account == o.Account && h.Amount == o.Amount && h.Type == o.Type
}
