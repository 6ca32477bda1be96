// Package cronkey owns the keys of scheduled clients: a name and a secret that
// a scheduler sends in the header cron-auth, as "<name>.<secret>", where a
// person would send x-auth (decision D-AUTH-07).
//
// The one idea: a secret has 256 random bits and is shown once. What is kept is
// its keyed hash, so a reader of the database can neither use a key nor make
// one. Without any key the credential does not exist.
//
// Start reading at Issuer, then Live for how a node judges a header.
package cronkey

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"regexp"
	"time"

	"castellan/domain/admin"
	"castellan/domain/audit"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/keyring"
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

// Table implements commit.Write.
func (Add) Table() string { return "cron_key" }

// Remove deletes a key; the unit is refused with commit.ErrFenced when there is
// none of the name.
type Remove struct{ Name string }

// Table implements commit.Write.
func (Remove) Table() string { return "cron_key" }

// Fence implements commit.Fence: it takes effect only while the row is there.
func (r Remove) Fence() (string, int64) { return r.Name, 0 }

const (
	secretBytes = 32
	// domain separates the hashes of these secrets from others.
	domain = "cron-key"
	// maxHeader bounds what is hashed of a header.
	maxHeader = 256
)

// nameShape has no dot, which ends the name in the header.
var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

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
	if !nameShape.MatchString(name) {
		return "", fault.Invalid("name", "must be 1 to 64 letters, digits, _ or -, and begin with a letter or digit")
	}
	var random [secretBytes]byte
	rand.Read(random[:]) // crypto/rand.Read never fails
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	k := Key{Name: name, Hash: i.Ring.Hash(domain, name, secret), CreatedAt: i.Changes.Now()}
	err = i.do(ctx, by, "CRON_KEY_ADD", name, Add{k})
	if err != nil {
		return "", err
	}
	return name + "." + secret, nil
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
