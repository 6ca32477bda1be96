// Package provider records the operator's balances at other platforms, such as spot exchanges and custodians (section
// 4.9 of the interface; decisions D-PRC-01 to D-PRC-03). The accounts are read every five minutes, and each reading is
// stored as a snapshot.
//
// The one idea: endpoints never call a provider. A job does, once per slot across all nodes. A snapshot has the time of
// the beginning of its slot, so a repeated run stores nothing twice. Start reading at Fetching, then Service.
package provider

import (
	"cmp"
	"context"
	"regexp"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/page"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/rate"
)

// Every is the interval at which providers are read, as defined by the interface (D-PRC-03).
const Every = 5 * time.Minute

// AllAccounts selects all accounts of a provider. No account has this name.
const AllAccounts = "AllAccounts"

// Balance is an account's balance of one asset at a provider.
type Balance struct {
	Asset        string // its code, in upper case
	Free, Locked amount.Amount
}

// Empty reports whether the balance is zero.
func (b Balance) Empty() bool { return b.Free.Sign() == 0 && b.Locked.Sign() == 0 }

// Account is one reading of an account at a provider.
type Account struct {
	Name     string
	Balances []Balance
	LeftOut  int // number of entries that are not valid balances
}

// Source reads accounts of one provider. It is safe for concurrent use.
type Source interface {
	// Fetch reads the accounts. Its errors contain neither queries nor keys.
	Fetch(ctx context.Context) ([]Account, error)
}

// Arrived writes the snapshot of an account. The first snapshot of an account and a slot counts; a later one changes
// nothing.
type Arrived struct {
	Provider, Account string
	At                time.Time // the beginning of the slot
	Balances          []Balance // one per asset, none empty
}

func (Arrived) Table() string { return "provider_snapshot" }

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func ValidName(text string) bool { return name.MatchString(text) && text != AllAccounts }

// Read makes a balance from the data of a provider: a code and two exact amounts that are not negative.
func Read(asset, free, locked string) (b Balance, ok bool) {
	b.Asset, ok = rate.Code(asset)
	var errFree, errLocked error
	b.Free, errFree = amount.Parse(free)
	b.Locked, errLocked = amount.Parse(locked)
	return b, ok && errFree == nil && errLocked == nil && b.Free.Sign() >= 0 && b.Locked.Sign() >= 0
}

// Entry is a balance in a snapshot.
type Entry struct {
	Account string
	At      time.Time
	Balance
}

// Place is the position of an entry of one asset in a list, newest first.
type Place struct {
	At      time.Time
	Account string
}

func (e Entry) Mark() Place { return Place{e.At, e.Account} }

// History selects the entries of one asset at a provider.
type History struct {
	Provider string
	Account  string // "": all
	Asset    string
	From, To time.Time // both ends included; zero: no limit
}

// Total is the total of an asset over all accounts of a provider, by the snapshots of one slot.
type Total struct {
	Asset               string
	Total, Free, Locked amount.Sum
}

// Store stores snapshots. It is safe for concurrent use. Arrived writes snapshots.
type Store interface {
	// Latest lists the balances of the last snapshot of each account of a provider, by account and asset. account "":
	// all accounts; asset "": all assets.
	Latest(ctx context.Context, provider, account, asset string) ([]Entry, error)
	// History lists the entries of an asset, newest first, then by account in descending order.
	History(ctx context.Context, q History, p page.Query[Place]) (page.Of[Entry], error)
	// At lists the balances of the snapshots of an instant by account and asset. found reports whether the provider has
	// a snapshot.
	At(ctx context.Context, provider string, at time.Time) (all []Entry, found bool, err error)
	// Purge deletes snapshots older than before.
	Purge(ctx context.Context, before time.Time) error
}

// Sum adds up the balances of accounts, by asset.
func Sum(all []Entry) []Total {
	sums := map[string]Total{}
	for _, e := range all {
		t := sums[e.Asset]
		t.Asset, t.Free, t.Locked = e.Asset, t.Free.Add(e.Free.Sum()), t.Locked.Add(e.Locked.Sum())
		t.Total = t.Free.Add(t.Locked)
		sums[e.Asset] = t
	}
	out := make([]Total, 0, len(sums))
	for _, t := range sums {
		out = append(out, t)
	}
	sorting.Func(out, func(a, b Total) int { return cmp.Compare(a.Asset, b.Asset) })
	return out
}
