// Package commit is the unit of work: what a step of the service writes is a
// list of plain values, and all of it becomes durable together or none of it
// does. A slice declares the Write values of its own rows; persistence knows
// how each is made. Because writes are data, the writer can gather the units
// of concurrent requests into one transaction of multi-row statements
// (docs/architecture.md, section 6).
//
// Start reading at Committer.
package commit

import (
	"context"
	"errors"
)

// Write is one change of one row. The slices define the concrete types;
// Table names the table only for messages and metrics.
type Write interface{ Table() string }

// Fence is a Write that takes effect only while its row is still as the
// writer saw it. If the row has moved on, the whole unit is refused with
// ErrFenced.
type Fence interface {
	Write
	// Fence returns the row's key and the version the writer saw.
	Fence() (key string, version int64)
}

// Delta is a Write that adds to a row, whatever the row holds. Additions commute,
// so a Delta claims nothing: all Deltas to one row in a transaction are summed and
// written once, last, in the order of their keys. A hot row therefore serialises
// nobody and is locked for the shortest time. W is the type itself.
type Delta[W any] interface {
	Write
	// Delta returns the row's key.
	Delta() (key string)
	// Plus returns the sum of two Deltas to one row; false when none can be held.
	Plus(other W) (sum W, ok bool)
}

// Guard is a condition on a row that the unit does not change: at commit its
// version still is Version, where 0 means that the row does not exist.
// Otherwise the unit is refused with ErrFenced.
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
	// AttemptBudget guards the wrong values counted per user and flow (D-2FA-13).
	AttemptBudget
)

func (g Guard) Table() string {
	if g.On == UserCredentials {
		return "users"
	}
	return "attempt_budget"
}

// Unflushed, among the writes of a unit, says that nobody is told of the unit
// before a later unit is durable. The unit is committed like any other: every
// reader sees it at once, and it outlives this process. But the database need not
// wait until its log is on the disk: a crash of the database's machine may lose
// the unit as long as no later one is durable.
type Unflushed struct{}

func (Unflushed) Table() string { return "unflushed" }

// ErrFenced reports that a fenced row or a guard had moved on: nothing of the
// unit was written. The caller loads the rows again and decides again.
var ErrFenced = errors.New("commit: a row has moved on")

// ErrUnknown reports that the fate of a COMMIT is not known. The caller must
// read before it answers, and never answers success because of this error.
var ErrUnknown = errors.New("commit: outcome unknown")

// Committer makes units durable. It is safe for concurrent use.
type Committer interface {
	// Commit makes all writes durable in one transaction before it returns
	// nil, unless Unflushed is one of them. Units of concurrent callers may
	// share the transaction, but a unit is refused alone: ErrFenced when a
	// fence or guard failed, RECORD_ALREADY_EXIST when an insert met a row
	// with its key, ErrUnknown when the connection broke while committing,
	// UNAVAILABLE when the database cannot be reached. Inside InTx (ctx is the
	// one that InTx gave) the writes join that transaction and become durable
	// with it.
	Commit(ctx context.Context, writes ...Write) error
	// InTx runs fn in one transaction that every store joins which is called
	// with the context fn receives. It commits when fn returns nil and rolls
	// back otherwise; fn must not keep the context. When it has committed it runs
	// what was given to After, and then returns.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}
