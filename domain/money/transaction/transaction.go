// Package transaction manages deposits and withdrawals with their statuses (sections 2.9, 3.4 and 4.14 of the
// interface, decisions D-TX-01 to D-TX-11).
//
// The one idea: a row records the event outside of the system, the ledger records the ownership of the money, and both
// commit together.
//
// Start reading at Service.Adjust, Service.UpdateStatus and Service.UpdateQueue; the doc comments of Deposit,
// Withdrawal and Queued define the content of a row in each status.
package transaction

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
)

// Status is the status of a transaction (section 3.4 of the interface). The queue of withdrawals has its own statuses
// (D-TX-09).
type Status int

// The statuses. These numbers are stored; the number that clients see for FinalizedDeposit is configured (D-TX-01).
const (
	WaitingTreasury  Status = -9 // waitingTreasuryApproval
	WaitingSender    Status = -5 // waitingSenderInfo
	WaitingQueue     Status = -1 // a withdrawal in the queue
	Finalized        Status = 1  // done
	FinalizedDeposit Status = 2  // a deposit that waited and is now credited
	Processing       Status = 3  // a withdrawal on its way
	Failed           Status = -2 // a withdrawal that the wallet could not send; nothing is held
	Cancelled        Status = -3 // a withdrawal that an administrator cancelled; nothing is held
)

var statusNames = map[Status]string{WaitingTreasury: "waitingTreasuryApproval", WaitingSender: "waitingSenderInfo",
	WaitingQueue: "waitingQueue", Finalized: "finalized", FinalizedDeposit: "finalizedDeposit", Processing: "processing",
	Failed: "failed", Cancelled: "cancelled"}

// String returns the name of the status in the interface.
func (s Status) String() string { return cmp.Or(statusNames[s], "unknown") }

// Direction is the direction of an adjustment.
type Direction string

// The directions, as seen from the user.
const (
	Credit Direction = "C" // a deposit
	Debit  Direction = "D" // a withdrawal to the treasury's address
)

// kindAdjustment is the kind of the transfers of adjustments: a unique id counts once, in either direction.
const kindAdjustment = "adjustment"

// kindDeposit is the kind of the transfers that credit deposits, by their ids.
const kindDeposit = "deposit"

// Deposit is an incoming transaction. Its id begins with At.
//
// WaitingTreasury and WaitingSender are not in the ledger: TransferID is "". In WaitingTreasury SenderInfo is set.
// Finalized and FinalizedDeposit are credited: TransferID is a transfer of Amount from the treasury to the user. The
// database rejects anything else. A deposit that waited is FinalizedDeposit after a decision of the treasury, and
// Finalized after a report of the wallet (Service.Report).
type Deposit struct {
	ID         string
	UserID     string
	Asset      int64
	Amount     amount.Amount
	Status     Status
	TxID       string
	ToAddress  string
	SenderInfo string // a JSON object; "" if unknown
	TransferID string // "" until it is credited
	At         time.Time
	// ExternalID and FromAddress are reported by another service; "" for none.
	ExternalID, FromAddress string
	Initiator               Initiator // set by AddDeposit
	// Facts are those by which the money policy judged its first report that would credit it, as JSON. AddDeposit sets
	// them, SetDeposit sets those that are missing, and nothing reads them here.
	Facts string
	// JobID is the job that moves a waiting deposit, or the last one that did. AddDeposit does not write it.
	JobID   string
	Version int64 // version of the row; set when it is read
}

// AddDeposit inserts a deposit.
type AddDeposit struct{ Deposit Deposit }

func (AddDeposit) Table() string { return "deposit" }

// Receive returns the movement that records a deposit, and credits it unless it waits. It sets the transfer of the
// deposit, and its id if that is "".
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

// credit returns the transfer that credits a deposit, once.
func (d Deposit) credit(now time.Time) ledger.Transfer {
	return ledger.New(now, kindDeposit, d.ID, ledger.Account{Kind: ledger.Treasury, Asset: d.Asset},
		account(d.UserID, d.Asset), d.Amount)
}

// SetDeposit sets status, sender, transfer and job of a deposit, and its facts if it has none.
type SetDeposit struct{ Deposit Deposit }

func (SetDeposit) Table() string { return "deposit" }

func (w SetDeposit) Fence() (key string, version int64) { return w.Deposit.ID, w.Deposit.Version }

// Withdrawal is an outgoing transaction. Its id begins with At.
//
// While it waits in the queue it has HoldID, an active hold of Amount and the fee (made by Enqueue), and no TransferID.
// After it was sent, TransferID is the transfer of Amount to the treasury, and Fee is the amount moved to the fee
// account in addition. In Failed and Cancelled the hold was released and nothing was moved.
type Withdrawal struct {
	ID          string
	UserID      string
	Asset       int64
	Amount, Fee amount.Amount
	Status      Status
	ToAddress   string
	TransferID  string // "" while the amount is only held
	HoldID      string // "" if nothing was held
	At          time.Time
	Initiator   Initiator // set by AddWithdrawal
	// OrderDigest is the digest of its Order, and OwnerMethods are the methods with which the owner approved it; "" for
	// none. AddWithdrawal sets both.
	OrderDigest, OwnerMethods string
	OwnerResistant            bool // whether one of these methods resists phishing
	// Destination is policy.DestinationKey, "" in rows of earlier versions. Facts are those of its request, as JSON;
	// AddWithdrawal sets both, and Facts is not read with the withdrawal.
	Destination, Facts string
	Device             policy.Device // "" if no rule asked for it; set by AddWithdrawal
	Version            int64         // version of the row; set when it is read
}

// device is Device as rules know it. An owner's device that was not read counts as new.
func (w Withdrawal) device() policy.Device {
	switch {
	case w.Initiator != Owner:
		return policy.NoDevice
	case w.Device == "":
		return policy.NewDevice
	}
	return w.Device
}

// AddWithdrawal inserts a withdrawal.
type AddWithdrawal struct{ Withdrawal Withdrawal }

func (AddWithdrawal) Table() string { return "withdrawal" }

// AddAddress assigns a coin address to an account. It has no effect if the account has the address.
type AddAddress struct {
	Account ledger.Account
	At      time.Time
}

func (AddAddress) Table() string { return "coin_address" }

// Address returns the address of an account. It is derived from asset and owner, so every node makes the same one. It
// belongs to no wallet: it identifies the account within this system, in a form that is not an address on any
// blockchain.
func Address(a ledger.Account) string {
	return fmt.Sprintf("%s%d:%s", addressPrefix, a.Asset, a.Owner)
}

const addressPrefix = "castellan:"

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
