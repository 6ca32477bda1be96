// Package cronkey owns the keys of scheduled clients: a name and a secret that
// a scheduler sends in the header cron-auth, as "<name>.<secret>", where a
// person would send x-auth (decision D-AUTH-07).
//
// The one idea is that of package clientkey. Without any key the credential does not exist.
//
// Start reading at Issuer, then Live for how a node judges a header.
package cronkey

import (
	"context"
	"errors"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
)

// Key is what is kept of a key.
type Key struct {
	Name      string
	Hash      keyring.Sum // of name and secret
	CreatedAt time.Time
}

// Store keeps the keys. It is safe for concurrent use.
type Store interface {
	// Keys lists every key by its name.
	Keys(ctx context.Context) ([]Key, error)
}

// Add inserts a key; the unit is refused with RECORD_ALREADY_EXIST when the name
// is taken.
type Add struct{ Key }

func (Add) Table() string { return "cron_key" }

// Remove deletes a key; the unit is refused with commit.ErrFenced when there is
// none of the name.
type Remove struct{ Name string }

func (Remove) Table() string { return "cron_key" }

// Fence implements commit.Fence: it takes effect only while the row is there.
func (r Remove) Fence() (string, int64) { return r.Name, 0 }

// domain separates the hashes of these secrets from others.
const domain = "cron-key"

// Issuer makes and removes keys for an operator. All fields are needed.
type Issuer struct {
	Changes admin.Changes // of topic change.CronKeys
	Ring    *keyring.Ring
}

// Add makes a key and returns the value of its header, which nobody can ever
// read again.
//
// Errors: INVALID_FIELD for a name that is not 1 to 64 letters, digits, _ and -,
// RECORD_ALREADY_EXIST for one that is taken.
func (i Issuer) Add(ctx context.Context, by audit.By, name string) (header string, err error) {
	if err := clientkey.CheckName(name); err != nil {
		return "", err
	}
	header, hash := clientkey.New(i.Ring, domain, name)
	k := Key{Name: name, Hash: hash, CreatedAt: i.Changes.Now()}
	err = i.do(ctx, by, "CRON_KEY_ADD", name, Add{k})
	if err != nil {
		return "", err
	}
	return header, nil
}

// Remove ends a key, on every node within a second; RECORD_NOT_FOUND when there
// is none of the name.
func (i Issuer) Remove(ctx context.Context, by audit.By, name string) error {
	err := i.do(ctx, by, "CRON_KEY_REMOVE", name, Remove{name})
	if errors.Is(err, commit.ErrFenced) {
		err = fault.New(fault.RecordNotFound, "there is no key of this name")
	}
	return err
}

func (i Issuer) do(ctx context.Context, by audit.By, action, name string, w commit.Write) error {
	return i.Changes.Do(ctx, by, action, func(context.Context) (admin.Done, error) {
		return admin.Done{Target: name, Writes: []commit.Write{w}}, nil
	})
}
