package totp

import (
	"context"
	"time"

	"castellan/domain/kit/keyring"
)

// Definition is the authenticator of an account, of which there is one at most.
type Definition struct {
	UserID    string
	ID        string // of this definition: the next one of the user has another
	Sealed    []byte // the secret, sealed with SecretData
	LastStep  int64  // newest step that was used; 0: none
	CreatedAt time.Time
}

// SecretData is the associated data under which a secret is sealed: it opens
// for its own row only (SEC-45).
func SecretData(userID, id string) []byte { return []byte("totp/" + userID + "/" + id) }

// RecoveryCode is a recovery code as it is stored.
type RecoveryCode struct {
	Number int // of its definition, from 1
	Sum    keyring.Sum
	UsedAt time.Time // zero: not used
}

// Define inserts a definition with its recovery codes, numbered from 1. The unit
// is refused with RECORD_ALREADY_EXIST when the user has one. user.SetTOTP goes
// beside it.
type Define struct {
	Definition
	Codes []keyring.Sum
}

func (Define) Table() string { return "totp" }

// Row tells the writer which row it changes.
func (w Define) Row() string { return w.UserID }

// Remove removes a user's definition and every recovery code of it. user.SetTOTP
// goes beside it.
type Remove struct{ UserID string }

func (Remove) Table() string { return "totp" }

// Row tells the writer which row it changes.
func (w Remove) Row() string { return w.UserID }

// UseStep uses a step up, and with it every older one. It is fenced: the
// definition must still be the user's and its last step older.
type UseStep struct {
	UserID, ID string
	Step       int64
}

func (UseStep) Table() string { return "totp" }

func (w UseStep) Fence() (string, int64) { return w.UserID, w.Step }

// UseCode uses a recovery code up. It is fenced: the code must still be there
// and not be used.
type UseCode struct {
	UserID, ID string
	Number     int
	At         time.Time
}

func (UseCode) Table() string { return "recovery_code" }

// Fence implements commit.Fence. Codes of one user are used one after another.
func (w UseCode) Fence() (string, int64) { return w.UserID, int64(w.Number) }

// Store reads authenticators. Writes go through commit.Committer as the values
// above. It is safe for concurrent use.
type Store interface {
	// Get reads the authenticator of a user; TOTP_NOT_DEFINED when there is none.
	Get(ctx context.Context, userID string) (Definition, error)
	// Codes lists the recovery codes of a definition by number; none for one that
	// is not the user's.
	Codes(ctx context.Context, userID, id string) ([]RecoveryCode, error)
}
