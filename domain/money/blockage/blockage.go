// Package blockage owns what keeps a user from using a part of the money: a row
// that names an amount of a currency, and the holds of the ledger that lock it
// (sections 2.9 and 4.17 of the interface; decisions D-BLK-01 to D-BLK-05).
//
// The one idea: a currency is blocked and accounts are locked. A user has an
// account on each network of a currency, so a blockage is spread over holds:
// first what is available, and what exceeds that on one account, for future funds.
// Row, holds and balances move in one unit of the ledger.
//
// Start reading at Service.Insert, then spread.
package blockage

import (
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
)

// Status of a blockage (D-BLK-02).
type Status string

// The statuses. A blockage may move between them in both directions.
const (
	Active   Status = "active"   // its amount is locked
	Released Status = "released" // nothing is locked
)

// Blockage is one blocked amount.
type Blockage struct {
	ID         int64
	UserID     string
	CurrencyID int64
	TypeID     int64 // what for; the service gives a meaning to none
	SourceID   int64 // who asked for it; 0: not said
	Amount     amount.Amount
	Status     Status
	// Description and Comment are texts of administrators, "" where there is none.
	Description, Comment string
	DescriptionJSON      json.RawMessage // an object, or nothing
	// Closure marks what the closing of an account made. A user has at most one
	// that is active for each currency (D-KYC-04).
	Closure bool
	Holds   int // how many it ever had; the ledger has them by its id and 1, 2, 3 …

	CreatedAt time.Time
	UpdatedAt time.Time // zero: never
	DeletedAt time.Time // zero: it is not deleted
	Version   int64

	// CurrencyCode and FullName are read with it.
	CurrencyCode, FullName string
}

var lastID atomic.Int64

// newID returns the id of a blockage made at an instant: below 2⁵³ until the year
// 2109, greater than those before it here, and known before the commit, because the
// holds carry it. Two nodes may make the same one, of which the table takes one.
func newID(now time.Time) int64 {
	for {
		last := lastID.Load()
		// #nosec G404: the id is told to clients; the table takes one of two.
		next := max(last+1, now.UnixMilli()<<11|rand.Int64N(1<<10))
		if lastID.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Place is where a blockage stands in a list, newest first.
type Place struct{ ID int64 }

func (b Blockage) Mark() Place { return Place{b.ID} }

// Add inserts a blockage. RECORD_ALREADY_EXIST when its id is taken, or when the
// user has another active closure of the currency.
type Add struct{ Blockage Blockage }

func (Add) Table() string { return "blockage" }

// Save writes a blockage as it was decided on its version.
type Save struct{ Blockage Blockage }

func (Save) Table() string { return "blockage" }

func (s Save) Fence() (key string, version int64) { return s.Blockage.key(), s.Blockage.Version }

var _ commit.Fence = Save{}
