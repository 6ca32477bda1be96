package transaction

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/money/ledger"
)

// QueueStatus is a status in the queue of withdrawals. It differs from the status of a transaction (D-TX-09).
type QueueStatus int

// The statuses of the queue. These numbers are stored; the numbers that clients see for HotWalletIsEmpty and TimeOut
// are configured (D-TX-02). Moves lists the moves between them.
const (
	QueueSuccess     QueueStatus = 4 // it has been sent
	QueueWaiting     QueueStatus = 5 // waitingApproval
	HotWalletIsEmpty QueueStatus = 6 // hotWalletInsufficientBalance
	TimeOut          QueueStatus = 7
	QueueReady       QueueStatus = 8  // queued: it waits for the wallet
	QueueProcessing  QueueStatus = 9  // processing: the wallet has claimed it and may send it
	QueueSent        QueueStatus = 10 // sent: its transaction is on the network
	QueueFailed      QueueStatus = 11 // failed: the wallet did not send it; final
	QueueCancelled   QueueStatus = 12 // cancelled by an administrator; final
)

var queueNames = map[QueueStatus]string{QueueSuccess: "success", QueueWaiting: "waitingApproval",
	HotWalletIsEmpty: "hotWalletInsufficientBalance", TimeOut: "timeOut", QueueReady: "queued",
	QueueProcessing: "processing", QueueSent: "sent", QueueFailed: "failed", QueueCancelled: "cancelled"}

// String returns the name of the status in the interface.
func (s QueueStatus) String() string { return cmp.Or(queueNames[s], "unknown") }

// Queued is an entry in the queue of the hot wallet. It has the id of its withdrawal.
//
// In QueueSuccess the withdrawal is booked and has a Process: Service.UpdateQueue makes its status Processing,
// Withdrawals.Move makes it Finalized. In QueueFailed and QueueCancelled its hold is released. In any other status it
// is held and not booked (Withdrawal).
type Queued struct {
	ID                                             string
	UserID                                         string
	Asset                                          int64
	Status                                         QueueStatus
	Address, AddressTag, ExternalID, Attempt, TxID string         // "" if absent
	Fee                                            *amount.Amount // of this withdrawal; nil: the fee of its currency
	// Reason is the last reason given by the wallet or an administrator; "" for none.
	Reason string
	// Held is why the entry is in QueueWaiting, unless an operator has put it there. ResumedAt is when an operator last
	// returned it to the wallet; zero: never.
	Held      Held
	ResumedAt time.Time
	// Claim is the stored form of the token of the worker that has claimed the entry, and ClaimedAt is when; "" for a
	// claim without a token.
	Claim     string
	ClaimedAt time.Time
	LeftAt    time.Time // of the last claim, also after it has ended; zero: never claimed
	At        time.Time
	Version   int64 // version of the row; set when it is read
}

// AddQueued inserts an entry of the queue.
type AddQueued struct{ Queued Queued }

func (AddQueued) Table() string { return "withdrawal_queue" }

// SetQueued sets status, transaction and reason of an entry.
type SetQueued struct{ Queued Queued }

func (SetQueued) Table() string { return "withdrawal_queue" }

func (w SetQueued) Fence() (key string, version int64) { return w.Queued.ID, w.Queued.Version }

// SetHeld sets hold, claim and the instant of the resume of an entry. It commits with a SetQueued, which fences it.
type SetHeld struct{ Queued Queued }

func (SetHeld) Table() string { return "withdrawal" }

// SetWithdrawal sets status, fee and transfer of a withdrawal.
type SetWithdrawal struct{ Withdrawal Withdrawal }

func (SetWithdrawal) Table() string { return "withdrawal" }

func (w SetWithdrawal) Fence() (key string, version int64) {
	return w.Withdrawal.ID, w.Withdrawal.Version
}

// Process is the process of a transaction on its network.
type Process struct {
	ID            string // begins with At
	TransactionID string // a transaction has at most one process
	UserID        string
	Asset         int64
	TxID          string
	Internal      bool // within this system
	Status        Status
	At            time.Time
	// Amount is that of its withdrawal, without the fee; zero if there is none. It is set when the process is read.
	Amount amount.Amount
}

// AddProcess inserts a process.
type AddProcess struct{ Process Process }

func (AddProcess) Table() string { return "process" }

// holdSource is the source of the holds of withdrawals, and the kind of the transfers that settle them; feeKind is the
// kind of the transfers of their fees. The reference of each is the id of the withdrawal.
const (
	holdSource = "withdrawal"
	feeKind    = "withdrawal-fee"
)

// Enqueue returns the movement that puts a withdrawal into the queue: it holds the amount and the fee, so that they are
// available later. fee is the expected cost of the withdrawal: q.Fee, or else the fee of the currency. Enqueue sets
// ids, user, asset and time of q, and the hold of w; w.ID begins with w.At or is "".
func Enqueue(w Withdrawal, q Queued, fee amount.Amount) (ledger.Movement, error) {
	held, err := w.Amount.Add(fee)
	if err != nil {
		return ledger.Movement{}, ledger.ErrTooLarge
	}
	if w.ID == "" {
		w.ID = id.New(w.At)
	}
	hold := ledger.NewHold(w.At, holdSource, w.ID, "withdrawal", account(w.UserID, w.Asset), held)
	w.HoldID, w.Status = hold.ID, WaitingQueue
	q.ID, q.UserID, q.Asset, q.Address, q.At = w.ID, w.UserID, w.Asset, w.ToAddress, w.At
	return ledger.Movement{Take: []ledger.Hold{hold}, With: []commit.Write{AddWithdrawal{w}, AddQueued{q}}}, nil
}

func account(userID string, asset int64) ledger.Account {
	return ledger.Account{Kind: ledger.User, Owner: userID, Asset: asset}
}

// internal reports whether an address belongs to an account of this system (Address).
func internal(address string) bool { return strings.HasPrefix(address, addressPrefix) }

// Mover is the actor of a move in the queue.
type Mover string

// The movers.
const (
	Wallet Mover = "wallet" // PATCH /integration/withdrawals/{id}
	Resume Mover = "resume" // POST /admin/withdrawals/{id}/resume
	Cancel Mover = "cancel" // POST /admin/withdrawals/{id}/cancel
	// OwnerCancel is POST /asset/withdrawals/{id}/cancel, by the owner of the account.
	OwnerCancel Mover = "owner"
	Hold        Mover = "hold"     // the job that holds the entries of a blocked account (D-POL-02)
	Release     Mover = "release"  // the end of a hold of the money policy (Withdrawals.EndHolds)
	Approve     Mover = "approve"  // a resume that is an approval and leaves the entry held
	Decision    Mover = "decision" // POST /admin/update-wallet-withdrawal-crypto-queue (D-TX-08)
)

// Move is an allowed move of an entry of the queue.
type Move struct {
	By       Mover
	From, To QueueStatus
}

// Moves returns the table of allowed moves (D-INT-04). Two rules keep money safe. The wallet claims an entry
// (QueueProcessing) before it signs anything, and only the wallet moves a claimed entry on. After QueueSent nothing
// releases the hold: the only next status is QueueSuccess, which books it.
func Moves() []Move { return slices.Clone(moves) }

var moves = []Move{
	{Wallet, QueueReady, QueueProcessing},
	{Wallet, QueueReady, HotWalletIsEmpty},
	{Wallet, QueueReady, TimeOut},
	{Wallet, QueueReady, QueueFailed},
	{Wallet, QueueProcessing, QueueSent},
	{Wallet, QueueProcessing, HotWalletIsEmpty},
	{Wallet, QueueProcessing, TimeOut},
	{Wallet, QueueProcessing, QueueFailed},
	{Wallet, HotWalletIsEmpty, QueueProcessing},
	{Wallet, HotWalletIsEmpty, QueueFailed},
	{Wallet, TimeOut, QueueProcessing},
	{Wallet, TimeOut, QueueFailed},
	{Wallet, QueueSent, QueueSent}, // another transaction replaced it
	{Wallet, QueueSent, QueueSuccess},

	{Resume, QueueWaiting, QueueReady},
	{Resume, HotWalletIsEmpty, QueueReady},
	{Resume, TimeOut, QueueReady},

	{Cancel, QueueReady, QueueCancelled},
	{Cancel, QueueWaiting, QueueCancelled},
	{Cancel, HotWalletIsEmpty, QueueCancelled},
	{Cancel, TimeOut, QueueCancelled},

	{OwnerCancel, QueueReady, QueueCancelled},
	{OwnerCancel, QueueWaiting, QueueCancelled},

	{Hold, QueueReady, QueueWaiting},
	{Hold, HotWalletIsEmpty, QueueWaiting},
	{Hold, TimeOut, QueueWaiting},

	{Release, QueueWaiting, QueueReady},
	{Release, QueueWaiting, QueueCancelled}, // the approvals have expired

	{Decision, HotWalletIsEmpty, QueueSuccess},
	{Decision, HotWalletIsEmpty, QueueWaiting},
	{Decision, TimeOut, QueueSuccess},
	{Decision, TimeOut, QueueWaiting},
}

// Allowed reports whether the table contains a move.
func Allowed(by Mover, from, to QueueStatus) bool { return slices.Contains(moves, Move{by, from, to}) }

// Final reports whether the status has no further moves.
func (s QueueStatus) Final() bool {
	return s == QueueSuccess || s == QueueFailed || s == QueueCancelled
}
