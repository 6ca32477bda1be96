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

// ClearGuard forgets every wrong try for an account, whatever the version of its row.
// Operators unlock an account by it: the prefixes that the account knows stay known, so
// that strangers who go on do not lock its owner out there. An account without a row
// stays without.
type ClearGuard struct{ Key string }

func (ClearGuard) Table() string { return "password_guard" }

// Row tells the writer which row it changes.
func (w ClearGuard) Row() string { return w.Key }

// ResetGuard replaces the guard of an account, whatever the version of its row: no try
// is counted, and Good is the only prefix that the account knows.
type ResetGuard struct {
	Key   string
	Good  Good
	Until time.Time // from then on the row may be purged
}

// ResetBy is the guard of an account whose owner has replaced its password from a
// prefix.
func ResetBy(key, prefix string, now time.Time) ResetGuard {
	return ResetGuard{Key: key, Good: Good{Prefix: prefix, At: now.UnixMilli()},
		Until: now.Add(DefaultGuardRules().GoodFor)}
}

func (ResetGuard) Table() string { return "password_guard" }

// Row tells the writer which row it changes.
func (w ResetGuard) Row() string { return w.Key }

// GuardStore reads guards. Writes go through commit.Committer. It is safe for
// concurrent use.
type GuardStore interface {
	// Guard reads the guard of an account; Version 0 when there is none.
	Guard(ctx context.Context, key string) (Guard, error)
	// Purge removes the rows that were out of use before the given instant, in
	// parts where there are very many.
	Purge(ctx context.Context, before time.Time) error
}
