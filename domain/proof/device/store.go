package device

import (
	"context"
	"time"
)

// Add inserts a device. The unit fails with RECORD_ALREADY_EXIST when the account has one with this key. user.SetPush
// accompanies it.
type Add struct{ Device }

func (Add) Table() string { return "device" }

// Row returns the row that the write changes.
func (w Add) Row() string { return w.ID }

// Remove removes a device of a user, including its key and target. user.SetPush accompanies it.
type Remove struct{ UserID, ID string }

func (Remove) Table() string { return "device" }

// Row returns the row that the write changes.
func (w Remove) Row() string { return w.ID }

// Mute removes the push target of a device if it is still this one. It never fails the unit: the target may have been
// removed meanwhile.
type Mute struct {
	ID     string
	Target []byte // in its sealed, stored form
}

func (Mute) Table() string { return "device" }

// Row returns the row that the write changes.
func (w Mute) Row() string { return w.ID }

// Use records that a signature of the device was accepted. It is fenced: the device must still belong to the user and
// be active.
type Use struct {
	UserID, ID string
	At         time.Time
}

func (Use) Table() string { return "device" }

// Fence makes two uses of one device go into different batches.
func (w Use) Fence() (string, int64) { return w.ID, w.At.UnixMilli() }

// See remembers a proof or a nonce, by its keyed hash, until an instant. It is fenced: a remembered one is refused.
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
	// Get reads a device; RECORD_NOT_FOUND if it does not exist.
	Get(ctx context.Context, id string) (Device, error)
	// List returns the devices of a user, newest first.
	List(ctx context.Context, userID string) ([]Device, error)
	// Shared reports whether a device of one user is also registered, by its key, in the account of another.
	Shared(ctx context.Context, userID, other string) (bool, error)
	// Purge forgets the proofs and nonces that need not be remembered at an instant any more.
	Purge(ctx context.Context, now time.Time) error
}
