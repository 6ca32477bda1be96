// Package transaction owns what comes in and what goes out: deposits and
// withdrawals with their statuses (sections 2.9, 3.4 and 4.14 of the interface,
// decisions D-TX-01 to D-TX-11).
//
// The one idea: a row says what happened outside, the ledger says whose money it
// is, and both commit together.
//
// Start reading at Service.Adjust, Service.UpdateStatus and Service.UpdateQueue;
// what a row of each status holds stands at Deposit, Withdrawal and Queued.
package transaction

import (
	"fmt"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/money/ledger"
)

// Status of a transaction (section 3.4 of the interface). The queue of withdrawals
// has a scale of its own (D-TX-09).
type Status int

// The statuses. These numbers are stored; what clients see of FinalizedDeposit is
// configured (D-TX-01).
const (
	WaitingTreasury  Status = -9 // waitingTreasuryApproval
	WaitingSender    Status = -5 // waitingSenderInfo
	WaitingQueue     Status = -1 // a withdrawal in the queue
	Finalized        Status = 1  // done
	FinalizedDeposit Status = 2  // a deposit that waited and is credited
	Processing       Status = 3  // a withdrawal that is on its way
	Failed           Status = -2 // a withdrawal that the wallet could not send; nothing is held
	Cancelled        Status = -3 // a withdrawal that an administrator cancelled; nothing is held
)

// String is the name of the status in the interface.
func (s Status) String() string {
	switch s {
	case WaitingTreasury:
		return "waitingTreasuryApproval"
	case WaitingSender:
		return "waitingSenderInfo"
	case WaitingQueue:
		return "waitingQueue"
	case Finalized:
		return "finalized"
	case FinalizedDeposit:
		return "finalizedDeposit"
	case Processing:
		return "processing"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	}
	return "unknown"
}

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

// kindDeposit is the kind of the transfers that credit deposits, by their ids.
const kindDeposit = "deposit"

// Deposit is what came in. Its id begins with At.
//
// WaitingTreasury and WaitingSender are not in the ledger: TransferID is "". What
// the treasury decides on has SenderInfo. Finalized and FinalizedDeposit are
// credited: TransferID is a transfer of Amount from the treasury to the user. The
// database refuses anything else. A deposit that waited is FinalizedDeposit after a
// decision of the treasury, and Finalized after a report of the wallet (Service.Report).
type Deposit struct {
	ID         string
	UserID     string
	Asset      int64
	Amount     amount.Amount
	Status     Status
	TxID       string
	ToAddress  string
	SenderInfo string // a JSON object; "" while it is not known
	TransferID string // "" while it is not credited
	At         time.Time
	// ExternalID and FromAddress are those that another service reported; "" for none.
	ExternalID, FromAddress string
	// JobID is the job that is moving a deposit which waits, or did so last. It is
	// not for AddDeposit.
	JobID   string
	Version int64 // of the row; set by what reads it
}

// AddDeposit inserts a deposit.
type AddDeposit struct{ Deposit Deposit }

func (AddDeposit) Table() string { return "deposit" }

// Receive is the movement that makes a deposit known, which credits it unless it
// waits. Its transfer is set here, and its id where it is "".
func Receive(d Deposit) ledger.Movement {
	if d.ID == "" {
		d.ID = id.New(d.At)
	}
	var m ledger.Movement
	if d.Status > 0 {
		m.Transfers = []ledger.Transfer{d.credit(d.At)}
		d.TransferID = m.Transfers[0].ID
	}
	m.With = []commit.Write{AddDeposit{d}}
	return m
}

// credit is the transfer that credits a deposit, once.
func (d Deposit) credit(now time.Time) ledger.Transfer {
	return ledger.New(now, kindDeposit, d.ID, ledger.Account{Kind: ledger.Treasury, Asset: d.Asset},
		account(d.UserID, d.Asset), d.Amount)
}

// SetDeposit sets status, sender, transfer and job of a deposit.
type SetDeposit struct{ Deposit Deposit }

func (SetDeposit) Table() string { return "deposit" }

func (w SetDeposit) Fence() (key string, version int64) { return w.Deposit.ID, w.Deposit.Version }

// Withdrawal is what goes out. Its id begins with At.
//
// While it waits in the queue it has HoldID, an active hold of Amount and the fee
// (Enqueue makes all of it), and no TransferID. Once it has gone out, TransferID is
// the transfer of Amount to the treasury, and Fee is what was moved to the fee
// account beside it. Failed and Cancelled released the hold and moved nothing.
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
	Version     int64 // of the row; set by what reads it
}

// AddWithdrawal inserts a withdrawal.
type AddWithdrawal struct{ Withdrawal Withdrawal }

func (AddWithdrawal) Table() string { return "withdrawal" }

// AddAddress gives an account the address to which its coins are sent. It is
// nothing when the account has it.
type AddAddress struct {
	Account ledger.Account
	At      time.Time
}

func (AddAddress) Table() string { return "coin_address" }

// Address is the address of an account: its asset and its owner, so that every node
// makes the same one. No wallet stands behind it: it names the account within this
// system, in a form that no blockchain takes for an address.
func Address(a ledger.Account) string {
	return fmt.Sprintf("%s%d:%s", addressPrefix, a.Asset, a.Owner)
}

const addressPrefix = "castellan:"
