package ledger

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/page"
)

// Store keeps the ledger. Every method joins the transaction that its context
// carries. It is safe for concurrent use and passes ledgertest.Run.
type Store interface {
	// Balances returns the balances of accounts that are open; others are left out.
	Balances(ctx context.Context, accounts ...Account) ([]Balance, error)
	// Owned returns the balances of a user's accounts, by asset.
	Owned(ctx context.Context, userID string) ([]Balance, error)
	// Unit returns the smallest amount that an asset may have, 0 when the ledger
	// does not know the asset yet.
	Unit(ctx context.Context, asset int64) (int64, error)
	// Transfer returns a transfer by its id. RECORD_NOT_FOUND.
	Transfer(ctx context.Context, id string) (Transfer, error)
	// ByRef returns a transfer by kind and reference. RECORD_NOT_FOUND.
	ByRef(ctx context.Context, kind, ref string) (Transfer, error)
	// Hold returns a hold by its id. RECORD_NOT_FOUND.
	Hold(ctx context.Context, id string) (Hold, error)
	// HoldByRef returns a hold by source and reference. RECORD_NOT_FOUND.
	HoldByRef(ctx context.Context, source, ref string) (Hold, error)
	// Statement returns a page of the transfers of an account, newest first. The
	// last page of a million transfers costs what the first one does.
	Statement(ctx context.Context, of Account, q page.Query[Place]) (page.Of[Transfer], error)
}

// Place is where a transfer stands in a statement.
type Place struct{ ID string }

func (t Transfer) Mark() Place { return Place{t.ID} }

// AddAsset makes an asset known, or finer. It is nothing when the asset has that
// precision or a finer one.
type AddAsset struct {
	ID   int64
	Unit int64 // 10^(18 - decimals)
}

func (AddAsset) Table() string { return "asset" }

// Open opens an account with a balance of 0. It is nothing when the account is
// open.
type Open struct{ Account Account }

func (Open) Table() string { return "account" }

// Save writes the balance of a bounded account, as it was decided on its version.
type Save struct{ Balance Balance }

func (Save) Table() string { return "balance" }

func (s Save) Fence() (key string, version int64) { return s.Balance.ID(), s.Balance.Version }

// Add adds to the balance of an unbounded account, whatever that is. Amount may be
// negative.
type Add struct {
	Account Account
	Amount  amount.Amount
	Count   int64 // of the transfers that are added
}

func (Add) Table() string { return "balance" }

func (a Add) Delta() string { return a.Account.ID() }

func (a Add) Plus(o Add) (sum Add, ok bool) {
	total, err := a.Amount.Add(o.Amount)
	return Add{a.Account, total, a.Count + o.Count}, err == nil
}

// Post inserts a transfer. RECORD_ALREADY_EXIST when its kind and reference, or
// what it reverses, stand already.
type Post struct{ Transfer Transfer }

func (Post) Table() string { return "transfer" }

// Take inserts a hold. RECORD_ALREADY_EXIST when its source and reference stand
// already.
type Take struct{ Hold Hold }

func (Take) Table() string { return "hold" }

// EndHold writes the end of a hold, as it was decided on its version.
type EndHold struct{ Hold Hold }

func (EndHold) Table() string { return "hold" }

func (e EndHold) Fence() (key string, version int64) { return e.Hold.ID, e.Hold.Version }
