// Package ledger records the money of all accounts. A transfer debits one account and credits another by one positive
// amount. It is never changed; a correction is another transfer. A balance is the sum of its account's credits less its
// debits, and commits with the transfer (docs/ledger.md).
//
// The one idea: bounded balances are checked, unbounded balances are only added to. A user's balance never falls below
// zero or below the locked amount, so its row is fenced by the version that the check saw (Save). A treasury may fall
// below zero, so a sum is added to its row (Add), and concurrent movements share one update.
//
// Start reading at Movement, then Ledger.Do.
package ledger

import (
	"strconv"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
)

// Kind is a kind of account.
type Kind string

// The kinds. Only the accounts of users are bounded.
const (
	User       Kind = "user"       // funds of a user; the owner is the user's id
	Treasury   Kind = "treasury"   // the other side of deposits and withdrawals
	Fee        Kind = "fee"        // fees and rounding differences
	Deposit    Kind = "deposit"    // deposits that are not credited yet
	Adjustment Kind = "adjustment" // corrections by administrators
	Suspense   Kind = "suspense"   // money of unknown origin
)

// Account is a place for money of one asset. Kind, owner and asset are its
// identity.
type Account struct {
	Kind  Kind
	Owner string // a user's id; "" for the single account of the operator
	Asset int64  // id of the currency of a network
}

// ID returns the key of the account: kind/asset/owner.
func (a Account) ID() string {
	return string(a.Kind) + "/" + strconv.FormatInt(a.Asset, 10) + "/" + a.Owner
}

// Bounded reports whether the balance may not fall below zero or below the locked amount.
func (a Account) Bounded() bool { return a.Kind == User }

// Balance is the balance of an account.
type Balance struct {
	Account
	Posted  amount.Amount // credits minus debits
	Locked  amount.Amount // active holds; may exceed Posted (D-BLK-03)
	Seq     int64         // transfers of the account so far
	Version int64         // 0: the account is not open
	// Unit is the smallest amount of the asset, in parts of 10⁻¹⁸.
	Unit int64
}

// Available is the amount that the owner may use: posted minus locked, at least 0.
func (b Balance) Available() amount.Amount {
	free, err := b.Posted.Sub(b.Locked)
	if err != nil || free.Sign() < 0 {
		return amount.Amount{}
	}
	return free
}

// fullRetry is the pause before a movement that was refused with ErrFull is worth another attempt.
const fullRetry = 5 * time.Minute

// Refusals of a movement.
var (
	// ErrInsufficient: the movement takes more than is available.
	ErrInsufficient = fault.New(fault.InvalidState, "the available balance is insufficient")
	// ErrConflict: the reference belongs to another movement.
	ErrConflict = fault.New(fault.RecordAlreadyExist, "the reference belongs to another movement")
	// ErrEnded: the hold was released or settled before.
	ErrEnded = fault.New(fault.InvalidState, "the hold has ended")
	// ErrPrecision: the amount has more decimals than the asset.
	ErrPrecision = fault.Invalid("amount", "has too many decimals")
	// ErrAmount: the amount is not positive.
	ErrAmount = fault.Invalid("amount", "must be greater than 0")
	// ErrTooLarge: the sum is too large for an account of a user.
	ErrTooLarge = fault.Invalid("amount", "is too large for an amount")
	// ErrFull: an account of the operator cannot take the amount. The request is correct and succeeds after the operator
	// has moved money of the account.
	ErrFull = fault.New(fault.Unavailable,
		"an account of the operator cannot take the amount; the operator has been alerted").After(fullRetry)
	// ErrNoAsset: no such currency of a network.
	ErrNoAsset = fault.New(fault.RecordNotFound, "no such asset")
)
