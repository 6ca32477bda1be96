package device

import (
	"context"
	"time"
)

// Add inserts a device. The unit is refused with RECORD_ALREADY_EXIST when the
// account has one with this key. user.SetPush goes beside it.
type Add struct{ Device }

func (Add) Table() string { return "device" }

// Row tells the writer which row it changes.
func (w Add) Row() string { return w.ID }

// Remove removes a device of a user, its key and target included. user.SetPush
// goes beside it.
type Remove struct{ UserID, ID string }

func (Remove) Table() string { return "device" }

// Row tells the writer which row it changes.
func (w Remove) Row() string { return w.ID }

// Mute takes the push target of a device away, if it still is this one. Nothing
// is refused by it: a target may have been taken away meanwhile.
type Mute struct {
	ID     string
	Target []byte // as it is stored, sealed
}

func (Mute) Table() string { return "device" }

// Row tells the writer which row it changes.
func (w Mute) Row() string { return w.ID }

// Use notes that a device signed something that was accepted. It is fenced: the
// device must still be the user's and active.
type Use struct {
	UserID, ID string
	At         time.Time
}

func (Use) Table() string { return "device" }

// Fence implements commit.Fence. Two uses of one device share no batch.
func (w Use) Fence() (string, int64) { return w.ID, w.At.UnixMilli() }

// See remembers a proof or a nonce, by its keyed hash, until an instant. It is
// fenced: one that is remembered already is not seen for the first time.
type See struct {
	ID    string
	At    time.Time
	Until time.Time
}

func (See) Table() string { return "device_proof" }

func (w See) Fence() (string, int64) { return w.ID, 0 }

// Store reads devices. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Get reads a device; RECORD_NOT_FOUND when there is none.
	Get(ctx context.Context, id string) (Device, error)
	// List returns the devices of a user, newest first.
	List(ctx context.Context, userID string) ([]Device, error)
	// Shared reports whether a device of one user is registered, by its key, in the account
	// of another one too.
	Shared(ctx context.Context, userID, other string) (bool, error)
	// Purge forgets the proofs and nonces that need not be remembered at an
	// instant any more.
	Purge(ctx context.Context, now time.Time) error
}
