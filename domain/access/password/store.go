package password

import (
	"context"
	"time"
)

// SaveGuard saves a guard. It is fenced by Guard.Version; 0 inserts.
type SaveGuard struct {
	Guard
	Until time.Time // from then on the row may be purged
}

func (SaveGuard) Table() string { return "password_guard" }

func (w SaveGuard) Fence() (string, int64) { return w.Key, w.Version }

// ClearGuard forgets every wrong try for an account, whatever the version of its row. Operators use it to unlock an
// account. The known prefixes stay known, so strangers who continue do not lock the owner out there. It creates no
// row.
type ClearGuard struct{ Key string }

func (ClearGuard) Table() string { return "password_guard" }

// Row returns the row that the write changes.
func (w ClearGuard) Row() string { return w.Key }

// ResetGuard replaces the guard of an account, whatever the version of its row. No try is counted, and Good is the
// only known prefix.
type ResetGuard struct {
	Key   string
	Good  Good
	Until time.Time // from then on the row may be purged
}

// ResetBy returns the guard of an account whose owner has replaced the password from a prefix.
func ResetBy(key, prefix string, now time.Time) ResetGuard {
	return ResetGuard{Key: key, Good: Good{Prefix: prefix, At: now.UnixMilli()},
		Until: now.Add(DefaultGuardRules().GoodFor)}
}

func (ResetGuard) Table() string { return "password_guard" }

// Row returns the row that the write changes.
func (w ResetGuard) Row() string { return w.Key }

// GuardStore reads guards. Writes go through commit.Committer. It is safe for
// concurrent use.
type GuardStore interface {
	// Guard reads the guard of an account; Version is 0 when it has none.
	Guard(ctx context.Context, key string) (Guard, error)
	// Purge removes the rows that expired before the given instant, in batches if they are many.
	Purge(ctx context.Context, before time.Time) error
}
