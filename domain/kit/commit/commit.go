// Package commit is the unit of work: a step of the service writes a list of plain values, which all become durable
// together or not at all. A slice declares the Write values of its own rows; persistence executes them. Because writes
// are data, the writer can gather the units of concurrent requests into one transaction of multi-row statements
// (docs/architecture.md, section 6).
//
// Start reading at Committer.
package commit

import (
	"context"
	"errors"
)

// Write is one change of one row. The slices define the concrete types; Table names the table, for messages and metrics
// only.
type Write interface{ Table() string }

// Fence is a Write that takes effect only while its row is still as the writer saw it. If the row has changed, the
// whole unit is rejected with ErrFenced.
type Fence interface {
	Write
	// Fence returns the row's key and the version that the writer saw.
	Fence() (key string, version int64)
}

// Delta is a Write that adds to a row, whatever the row holds. Additions commute, so a Delta locks nothing in advance:
// all Deltas to one row in a transaction are summed and written once, last, in the order of their keys. A hot row
// therefore serialises no writers and is locked for the shortest time. W is the type itself.
type Delta[W any] interface {
	Write
	// Delta returns the row's key.
	Delta() (key string)
	// Plus returns the sum of two Deltas to one row; false if the sum is out of range.
	Plus(other W) (sum W, ok bool)
}

// Guard is a condition on a row that the unit does not change: at commit the row still has Version; 0 means that the
// row does not exist. Otherwise the unit is rejected with ErrFenced.
type Guard struct {
	On      GuardedTable
	Key     string
	Version int64
}

// GuardedTable names a table whose rows may be guarded.
type GuardedTable int

// The guarded tables.
const (
	// UserCredentials guards the credential version (cv) of a user (D-AUTH-11).
	UserCredentials GuardedTable = iota
	// AttemptBudget guards the count of wrong values per user and flow (D-2FA-13).
	AttemptBudget
	// UserMoney guards the money version of a user (D-POL-01). The row stays unchanged until the unit has committed.
	UserMoney
)

func (g Guard) Table() string {
	if g.On == AttemptBudget {
		return "attempt_budget"
	}
	return "users"
}

// Guarding is a Write that fails unless a Guard holds. The same Guard in its unit costs no statement.
type Guarding interface {
	Write
	Guarded() Guard
}

// Unflushed, among the writes of a unit, declares that no caller learns of the unit until a later unit is durable. The
// unit is committed like any other: every reader sees it at once, and it outlives this process. But the database need
// not flush its log to disk for it. A crash of the database's machine may lose the unit until a later one is durable.
type Unflushed struct{}

func (Unflushed) Table() string { return "unflushed" }

// ErrFenced reports that a fenced or guarded row has changed: nothing of the unit was written. The caller loads the
// rows and decides again.
var ErrFenced = errors.New("commit: a row has moved on")

// ErrUnknown reports that the outcome of a COMMIT is unknown. The caller must read before it responds, and never
// reports success because of this error.
var ErrUnknown = errors.New("commit: outcome unknown")

// ErrCheck reports that a check of the schema refused a row, such as a sum that is out of range: nothing of the unit
// was written.
var ErrCheck = errors.New("commit: a check of the schema refused a row")

// Committer makes units durable. It is safe for concurrent use.
type Committer interface {
	// Commit makes all writes durable in one transaction before it returns nil, unless Unflushed is one of them. Units
	// of concurrent callers may share the transaction, but each unit is rejected alone. Errors: ErrFenced if a fence or
	// guard failed; RECORD_ALREADY_EXIST if an inserted key exists; ErrUnknown if the connection broke while
	// committing; UNAVAILABLE if the database cannot be reached. Inside InTx (ctx comes from InTx) the writes join that
	// transaction and become durable with it.
	Commit(ctx context.Context, writes ...Write) error
	// InTx runs fn in one transaction. Every store that is called with the context passed to fn joins it. InTx commits
	// if fn returns nil and rolls back otherwise; fn must not keep the context. After the commit it runs the functions
	// passed to After, and then returns.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}
