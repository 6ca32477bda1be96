package totp

import (
	"context"
	"time"

	"castellan/domain/kit/keyring"
)

// Definition is the authenticator of an account, which has at most one.
type Definition struct {
	UserID    string
	ID        string // of this definition; the user's next one has another id
	Sealed    []byte // the secret, sealed with SecretData
	LastStep  int64  // newest used step; 0: none
	CreatedAt time.Time
}

// SecretData returns the associated data of a sealed secret: it opens for its own row only (SEC-45).
func SecretData(userID, id string) []byte { return []byte("totp/" + userID + "/" + id) }

// RecoveryCode is the stored form of a recovery code.
type RecoveryCode struct {
	Number int // of its definition, from 1
	Sum    keyring.Sum
	UsedAt time.Time // zero: not used
}

// Define inserts a definition with its recovery codes, numbered from 1. The unit fails with RECORD_ALREADY_EXIST when
// the user has one. user.SetTOTP accompanies it.
type Define struct {
	Definition
	Codes []keyring.Sum
}

func (Define) Table() string { return "totp" }
func (w Define) Row() string { return w.UserID }

// Remove removes a user's definition and all its recovery codes. user.SetTOTP accompanies it.
type Remove struct{ UserID string }

func (Remove) Table() string { return "totp" }
func (w Remove) Row() string { return w.UserID }

// UseStep uses up a step and every older one. It is fenced: the definition must still belong to the user, and its
// last step must be older.
type UseStep struct {
	UserID, ID string
	Step       int64
}

func (UseStep) Table() string            { return "totp" }
func (w UseStep) Fence() (string, int64) { return w.UserID, w.Step }

// UseCode uses up a recovery code. It is fenced: the code must still exist and be unused.
type UseCode struct {
	UserID, ID string
	Number     int
	At         time.Time
}

func (UseCode) Table() string { return "recovery_code" }

// Fence makes the codes of one user commit one after another.
func (w UseCode) Fence() (string, int64) { return w.UserID, int64(w.Number) }

// Store reads authenticators. Writes go through commit.Committer as the values
// above. It is safe for concurrent use.
type Store interface {
	// Get reads the authenticator of a user; TOTP_NOT_DEFINED if the user has none.
	Get(ctx context.Context, userID string) (Definition, error)
	// Codes lists the recovery codes of a definition by number; none for a definition of another user.
	Codes(ctx context.Context, userID, id string) ([]RecoveryCode, error)
}
