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

func (w ResetGuard) Row() string { return w.Key }

// UseKind records that more accounts have hashes of a kind.
type UseKind struct {
	Kind     Kind
	Accounts int64
}

func (UseKind) Table() string { return "hash_kind" }

func (w UseKind) Row() string { return w.Kind.String() }

// SetKinds replaces the numbers of accounts by counted ones, by Kind.String. Kinds that it does not name have none.
type SetKinds map[string]int64

func (SetKinds) Table() string { return "hash_kind" }

// SaveCensus records that the kinds were counted. It is fenced by the version that the counting node saw, so of several
// nodes one saves.
type SaveCensus struct{ Census }

func (SaveCensus) Table() string { return "hash_census" }

func (w SaveCensus) Fence() (string, int64) { return CensusID, w.Version }

// ExpireImported removes the hash of another service from an account, so that the password must be reset. An account
// that has logged in meanwhile keeps its hash. It raises no version.
type ExpireImported struct{ UserID string }

func (ExpireImported) Table() string { return "users" }

func (w ExpireImported) Row() string { return w.UserID }

// CensusID is the key of the one census.
const CensusID = "users"

// Census is when the hashes of accounts were last counted.
type Census struct {
	Version int64  // 0: never
	Seed    []byte // of Hasher.SetKinds
	// Since is the first start of a version that has a census. Imported hashes expire after it (password.import_keep).
	Since   time.Time
	Counted time.Time
}

// KindStore reads the kinds of hashes. It is safe for concurrent use.
type KindStore interface {
	// Census reads the census.
	Census(ctx context.Context) (Census, error)
	// Portions lists the recorded kinds, most frequent first, at most limit.
	Portions(ctx context.Context, limit int) ([]Portion, error)
	// Count counts the accounts by the kinds of their hashes. It reads the rows of all accounts.
	Count(ctx context.Context, limit int) (map[string]int64, error)
	// Imported counts the accounts that were imported before an instant and have an imported hash.
	Imported(ctx context.Context, before time.Time) (int64, error)
	// ImportedUsers lists the ids of such accounts, oldest first, at most limit.
	ImportedUsers(ctx context.Context, before time.Time, limit int) ([]string, error)
}

// GuardStore reads guards. Writes go through commit.Committer. It is safe for
// concurrent use.
type GuardStore interface {
	// Guard reads the guard of an account; Version is 0 when it has none.
	Guard(ctx context.Context, key string) (Guard, error)
	// Purge removes the rows that expired before the given instant, in batches if they are many.
	Purge(ctx context.Context, before time.Time) error
}
