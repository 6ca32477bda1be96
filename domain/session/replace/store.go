package replace

import (
	"context"
	"time"
)

// Token is the stored form of an ot-auth token that may still be used: the keyed hash of its jti and its user. A user
// has at most one.
type Token struct {
	ID        string // keyed hash of the jti
	UserID    string
	CV        int64 // credential version of the user when it was made
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Issue stores a token; it replaces the user's earlier one.
type Issue struct{ Token }

func (Issue) Table() string { return "reset_token" }

func (w Issue) Row() string { return w.UserID }

// Redeem uses up a user's token. It is a fence: the stored token must still have this id, and is deleted.
type Redeem struct{ UserID, ID string }

func (Redeem) Table() string { return "reset_token" }

func (w Redeem) Fence() (string, int64) { return w.UserID, 1 }

// Store reads tokens. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Token reads a token by its id; RECORD_NOT_FOUND when it was used, was replaced or never existed.
	Token(ctx context.Context, id string) (Token, error)
	// Purge removes tokens that expired before an instant.
	Purge(ctx context.Context, expired time.Time) error
}
