package ledger

import (
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
)

// State of a hold.
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
	// Source and Ref count a hold once: a withdrawal's id in its queue, a
	// blockage's number.
	Source, Ref string
	Type        string // says what for, such as "withdrawal"
	Amount      amount.Amount
	State       State
	Transfer    string // that settled it; "" for none
	Version     int64
	// Beyond lets the hold exceed what is available: a blockage also holds future
	// funds (D-BLK-03). It is not stored.
	Beyond bool
}

// NewHold returns a hold on an account of a user.
func NewHold(now time.Time, source, ref, kind string, of Account, a amount.Amount) Hold {
	return Hold{ID: id.New(now), Account: of, Source: source, Ref: ref, Type: kind, Amount: a, State: Active, Version: 1}
}

// ended is the hold after it was released, or settled by a transfer. ErrEnded.
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

// same reports whether h asks for what o was made for.
func (h Hold) same(o Hold) bool {
	return h.Source == o.Source && h.Ref == o.Ref && h.Account == o.Account && h.Amount == o.Amount && h.Type == o.Type
}
