// Package transaction owns what comes in and what goes out: deposits and
// withdrawals with their statuses (sections 2.9, 3.4 and 4.14 of the interface,
// decisions D-TX-01 to D-TX-11).
//
// The one idea: a row says what happened outside, the ledger says whose money it
// is, and both commit together.
//
// Start reading at Service.Adjust.
package transaction

import (
	"fmt"
	"time"

	"castellan/domain/amount"
	"castellan/domain/ledger"
)

// Status of a transaction (section 3.4 of the interface). The queue of withdrawals
// has a scale of its own (D-TX-09).
type Status int

// Finalized is a transaction that is done.
const Finalized Status = 1

// Direction of an adjustment.
type Direction string

// The directions, as seen from the user.
const (
	Credit Direction = "C" // a deposit
	Debit  Direction = "D" // a withdrawal to the treasury's address
)

// kindAdjustment is the kind of the transfers of adjustments: a unique id counts
// once, whatever its direction.
const kindAdjustment = "adjustment"

// Deposit is what came in. Its transfer has the same id.
type Deposit struct {
	ID         string
	UserID     string
	Asset      int64
	Amount     amount.Amount
	Status     Status
	TxID       string
	ToAddress  string
	SenderInfo string // JSON; "" while it is not known
	TransferID string // "" while it is not credited
	At         time.Time
}

// AddDeposit inserts a deposit.
type AddDeposit struct{ Deposit Deposit }

// Table implements commit.Write.
func (AddDeposit) Table() string { return "deposit" }

// Withdrawal is what goes out.
type Withdrawal struct {
	ID          string
	UserID      string
	Asset       int64
	Amount, Fee amount.Amount
	Status      Status
	ToAddress   string
	TransferID  string // "" while the amount is only held
	HoldID      string // "" where nothing was held
	At          time.Time
}

// AddWithdrawal inserts a withdrawal.
type AddWithdrawal struct{ Withdrawal Withdrawal }

// Table implements commit.Write.
func (AddWithdrawal) Table() string { return "withdrawal" }

// AddAddress gives an account the address to which its coins are sent. It is
// nothing when the account has it.
type AddAddress struct {
	Account ledger.Account
	At      time.Time
}

// Table implements commit.Write.
func (AddAddress) Table() string { return "coin_address" }

// Address is the address of an account: its asset and its owner, so that every node
// makes the same one. No wallet stands behind it: it names the account within this
// system, in a form that no blockchain takes for an address.
func Address(a ledger.Account) string {
	return fmt.Sprintf("castellan:%d:%s", a.Asset, a.Owner)
}
