package ledger

import (
	"context"

	"castellan/domain/kit/amount"
)

// Store stores the ledger. Every method joins the transaction that its context carries. It is safe for concurrent use
// and passes ledgertest.Run.
type Store interface {
	// Balances returns the balances of the open accounts among accounts.
	Balances(ctx context.Context, accounts ...Account) ([]Balance, error)
	// Owned returns the balances of a user's accounts, by asset.
	Owned(ctx context.Context, userID string) ([]Balance, error)
	// Unit returns the smallest amount of an asset, 0 if the ledger has not recorded the asset yet.
	Unit(ctx context.Context, asset int64) (int64, error)
	// ByRef returns a transfer by kind and reference. RECORD_NOT_FOUND.
	ByRef(ctx context.Context, kind, ref string) (Transfer, error)
	// Hold returns a hold by its id. RECORD_NOT_FOUND.
	Hold(ctx context.Context, id string) (Hold, error)
	// HoldByRef returns a hold by source and reference. RECORD_NOT_FOUND.
	HoldByRef(ctx context.Context, source, ref string) (Hold, error)
}

// AddAsset records an asset, or more decimals for it. It has no effect if the asset has at least that precision.
type AddAsset struct {
	ID   int64
	Unit int64 // 10^(18 - decimals)
}

func (AddAsset) Table() string { return "asset" }

// Open opens an account with a balance of 0. It has no effect if the account is open.
type Open struct{ Account Account }

func (Open) Table() string { return "account" }

// Save writes the balance of a bounded account, fenced by its version.
type Save struct{ Balance Balance }

func (Save) Table() string { return "balance" }

func (s Save) Fence() (key string, version int64) { return s.Balance.ID(), s.Balance.Version }

// Add adds to the balance of an unbounded account, whatever its value. Amount may be negative.
type Add struct {
	Account Account
	Amount  amount.Amount
	Count   int64 // number of added transfers
}

func (Add) Table() string { return "balance" }

func (a Add) Delta() string { return a.Account.ID() }

func (a Add) Plus(o Add) (sum Add, ok bool) {
	total, err := a.Amount.Add(o.Amount)
	return Add{a.Account, total, a.Count + o.Count}, err == nil
}

// Post inserts a transfer. RECORD_ALREADY_EXIST if its kind and reference exist, or the transfer that it reverses is
// already reversed.
type Post struct{ Transfer Transfer }

func (Post) Table() string { return "transfer" }

// Take inserts a hold. RECORD_ALREADY_EXIST if its source and reference exist.
type Take struct{ Hold Hold }

func (Take) Table() string { return "hold" }

// EndHold writes the end of a hold, fenced by its version.
type EndHold struct{ Hold Hold }

func (EndHold) Table() string { return "hold" }

func (e EndHold) Fence() (key string, version int64) { return e.Hold.ID, e.Hold.Version }
