// Package ledger owns whose money is where. One transfer is one movement: an
// account that is debited, an account that is credited, one positive amount. It
// is never changed; a correction is another transfer. A balance is the sum of
// what its account was credited with, less what it was debited with, and commits
// with the transfer (docs/ledger.md).
//
// The one idea: what is bounded is decided, what is unbounded is added. A user's
// balance never falls below zero or below what is locked, so its row is fenced by
// the version that the decision saw (Save). A treasury may fall below zero, so
// its row only gets a sum added (Add), and all movements of a moment share one
// update of it.
//
// Start reading at Movement, then Ledger.Do.
package ledger

import (
	"strconv"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
)

// Kind is a sort of accounts.
type Kind string

// The kinds. Only the accounts of users are bounded.
const (
	User       Kind = "user"       // what a user has; the owner is the user's id
	Treasury   Kind = "treasury"   // the other side of deposits and withdrawals
	Fee        Kind = "fee"        // fees, and what rounding leaves
	Deposit    Kind = "deposit"    // deposits that are not credited yet
	Adjustment Kind = "adjustment" // corrections by administrators
	Suspense   Kind = "suspense"   // money that nobody can explain yet
)

// Account is a place for money of one asset. Kind, owner and asset are its
// identity.
type Account struct {
	Kind  Kind
	Owner string // a user's id; "" for the one account of the house
	Asset int64  // id of the currency of a network
}

// ID is the key of the account: kind/asset/owner.
func (a Account) ID() string {
	return string(a.Kind) + "/" + strconv.FormatInt(a.Asset, 10) + "/" + a.Owner
}

// Bounded reports whether the account never falls below zero nor below what is
// locked.
func (a Account) Bounded() bool { return a.Kind == User }

// Balance is what an account has.
type Balance struct {
	Account
	Posted  amount.Amount // credits less debits
	Locked  amount.Amount // active holds; may exceed Posted (D-BLK-03)
	Seq     int64         // transfers of the account so far
	Version int64         // 0: the account is not open
	// Unit is the smallest amount of the asset, in parts of 10⁻¹⁸.
	Unit int64
}

// Available is what the owner may use: what is posted and not locked, at least 0.
func (b Balance) Available() amount.Amount {
	free, err := b.Posted.Sub(b.Locked)
	if err != nil || free.Sign() < 0 {
		return amount.Amount{}
	}
	return free
}

// What a movement may be refused for.
var (
	// ErrInsufficient: the movement takes more than is available.
	ErrInsufficient = fault.New(fault.InvalidState, "the available balance does not suffice")
	// ErrConflict: the reference belongs to another movement.
	ErrConflict = fault.New(fault.RecordAlreadyExist, "the reference belongs to another movement")
	// ErrEnded: the hold was released or settled before.
	ErrEnded = fault.New(fault.InvalidState, "the hold has ended")
	// ErrPrecision: the amount has more decimals than the asset.
	ErrPrecision = fault.Invalid("amount", "has too many decimals")
	// ErrAmount: the amount is not positive.
	ErrAmount = fault.Invalid("amount", "must be greater than 0")
	// ErrTooLarge: the sum is too large for an account.
	ErrTooLarge = fault.Invalid("amount", "is too large for an amount")
	// ErrNoAsset: no such currency of a network.
	ErrNoAsset = fault.New(fault.RecordNotFound, "no such asset")
)
