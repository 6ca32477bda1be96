package transaction

import "slices"

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
