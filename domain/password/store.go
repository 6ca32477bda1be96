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

// Table implements commit.Write.
func (SaveGuard) Table() string { return "password_guard" }

// Fence implements commit.Fence.
func (w SaveGuard) Fence() (string, int64) { return w.Key, w.Version }

// ClearGuard forgets every wrong try for an account, whatever the version of its row.
// It is how an operator unlocks an account: the prefixes that the account knows stay
// known, so that strangers who go on do not shut its owner out there. Where Good is not
// nil it is the only prefix that the account knows from then on: its password was
// replaced. An account without a row stays without unless Good is given.
type ClearGuard struct {
	Key  string
	Good *Good
	// Until is from when on the row may be purged; for Good only.
	Until time.Time
}

// Anew is the guard of an account whose password was replaced by who proved to be its
// owner, from a prefix.
func Anew(key, prefix string, now time.Time) ClearGuard {
	return ClearGuard{Key: key, Good: &Good{Prefix: prefix, At: now.UnixMilli()},
		Until: now.Add(DefaultGuardRules().GoodFor)}
}

// Table implements commit.Write.
func (ClearGuard) Table() string { return "password_guard" }

// Row tells the writer which row it changes.
func (w ClearGuard) Row() string { return w.Key }

// GuardStore reads guards. Writes go through commit.Committer. It is safe for
// concurrent use.
type GuardStore interface {
	// Guard reads the guard of an account; Version 0 when there is none.
	Guard(ctx context.Context, key string) (Guard, error)
	// Purge removes the rows that were out of use before the given instant, in
	// parts where there are very many.
	Purge(ctx context.Context, before time.Time) error
}
