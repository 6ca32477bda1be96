// Package blockage blocks an amount of a user's money (sections 2.9 and 4.17 of the interface; decisions D-BLK-01 to
// D-BLK-05). A row holds the amount of a currency, and holds of the ledger lock it.
//
// The one idea: a currency is blocked and accounts are locked. A user has an account on each network of a currency, so
// a blockage is spread over holds. Available amounts are locked first; the excess is locked on one account, for future
// funds. Row, holds and balances change in one unit of the ledger.
//
// Start reading at Service.Insert, then spread.
package blockage

import (
	"encoding/json"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"castellan/domain/kit/amount"
)

// Status is the status of a blockage (D-BLK-02).
type Status string

// The statuses. A blockage may change between them in both directions.
const (
	Active   Status = "active"   // its amount is locked
	Released Status = "released" // nothing is locked
)

// Blockage is one blocked amount.
type Blockage struct {
	ID         int64
	UserID     string
	CurrencyID int64
	TypeID     int64 // the purpose; it has no meaning to the service
	SourceID   int64 // the requester; 0: not stated
	Amount     amount.Amount
	Status     Status
	// Description and Comment are texts of administrators, "" if absent.
	Description, Comment string
	DescriptionJSON      json.RawMessage // a JSON object, or nothing
	// Closure is true for a blockage made by the closing of an account. A user has at most one active closure for each
	// currency (D-KYC-04).
	Closure bool
	Holds   int // number of holds ever made; the ledger has them by the id and 1, 2, 3 …

	CreatedAt time.Time
	UpdatedAt time.Time // zero: never
	DeletedAt time.Time // zero: not deleted
	Version   int64

	// CurrencyCode and FullName are set when the blockage is read.
	CurrencyCode, FullName string
}

var lastID atomic.Int64

// newID returns the id of a blockage made at an instant. It is below 2⁵³ until the year 2109, greater than earlier ones
// of this process, and known before the commit, because the holds carry it. If two nodes make the same id, the table
// accepts one.
func newID(now time.Time) int64 {
	for {
		last := lastID.Load()
		// #nosec G404: clients see the id; the table accepts one of two.
		next := max(last+1, now.UnixMilli()<<11|rand.Int64N(1<<10))
		if lastID.CompareAndSwap(last, next) {
			return next
		}
	}
}

// Place is the position of a blockage in a list, newest first.
type Place struct{ ID int64 }

func (b Blockage) Mark() Place { return Place{b.ID} }

// Add inserts a blockage. RECORD_ALREADY_EXIST if its id is taken, or if the user has another active closure of the
// currency.
type Add struct{ Blockage Blockage }

func (Add) Table() string { return "blockage" }

// Save updates a blockage, fenced by its version.
type Save struct{ Blockage Blockage }

func (Save) Table() string { return "blockage" }

func (s Save) Fence() (key string, version int64) { return s.Blockage.key(), s.Blockage.Version }
