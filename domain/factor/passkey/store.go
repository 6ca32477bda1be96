package passkey

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Add inserts a passkey. The unit fails with RECORD_ALREADY_EXIST when any account has one with this credential id.
// user.SetPush accompanies it.
type Add struct{ Credential }

func (Add) Table() string { return "passkey" }
func (w Add) Row() string { return w.DeviceID }

// Remove removes a passkey of a user. user.SetPush accompanies it.
type Remove struct{ UserID, DeviceID string }

func (Remove) Table() string { return "passkey" }
func (w Remove) Row() string { return w.DeviceID }

// Use records that an assertion of a passkey was accepted. It is fenced: the passkey must still belong to the user and
// have the counter that the verifier saw. So of two assertions with one counter only one is accepted.
type Use struct {
	UserID, DeviceID string
	Seen, Count      uint32
	BackedUp         bool
	At               time.Time
}

func (Use) Table() string { return "passkey" }

// Fence makes two uses of one passkey go into different batches.
func (w Use) Fence() (string, int64) { return w.DeviceID, w.At.UnixMilli() }

// Moved records that the flags of a passkey's backup have changed. Since is when it began to settle.
type Moved struct {
	UserID, DeviceID   string
	Eligible, BackedUp bool
	Since              time.Time
}

func (Moved) Table() string { return "passkey" }
func (w Moved) Row() string { return w.DeviceID }

// Restart records for all passkeys of a user that a factor was changed without one of them.
type Restart struct {
	UserID string
	At     time.Time
}

func (Restart) Table() string { return "passkey" }
func (w Restart) Row() string { return w.UserID }

// usePrefix begins the key of a use; no id of a device has it.
const usePrefix = "passkey/"

// Key returns the use without its user and time as text, for challenge.Use.
func (w Use) Key() string {
	return fmt.Sprintf("%s%s/%d/%d/%t", usePrefix, w.DeviceID, w.Seen, w.Count, w.BackedUp)
}

// UseOf reads the form of Key; false for anything else.
func UseOf(key string) (w Use, ok bool) {
	rest, ok := strings.CutPrefix(key, usePrefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 4 {
		return Use{}, false
	}
	seen, errSeen := strconv.ParseUint(parts[1], 10, 32)
	count, errCount := strconv.ParseUint(parts[2], 10, 32)
	w = Use{DeviceID: parts[0], Seen: uint32(seen), Count: uint32(count), BackedUp: parts[3] == "true"}
	return w, errSeen == nil && errCount == nil
}

// Store reads passkeys. Writes go through commit.Committer as the values above. It is safe for concurrent use.
type Store interface {
	// ByCredential reads a passkey by the id of its credential; RECORD_NOT_FOUND if it does not exist.
	ByCredential(ctx context.Context, id []byte) (Credential, error)
	// List returns the passkeys of a user, newest first.
	List(ctx context.Context, userID string) ([]Credential, error)
}
