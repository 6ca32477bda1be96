// Package cronkey owns the keys of scheduled clients: a name and a secret. A scheduler sends them in the header
// cron-auth, as "<name>.<secret>", instead of the x-auth of a user (decision D-AUTH-07).
//
// The one idea is that of package clientkey. Without any key the credential does not exist.
//
// Start reading at Issuer, then Cache for the check of a header.
package cronkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/clientkey"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
)

// Key is the stored form of a key.
type Key struct {
	Name      string
	Hash      keyring.Sum // of name and secret
	CreatedAt time.Time
}

// Store keeps the keys. It is safe for concurrent use.
type Store interface {
	// Keys lists all keys by name.
	Keys(ctx context.Context) ([]Key, error)
}

// Add inserts a key; the unit fails with RECORD_ALREADY_EXIST when the name is taken.
type Add struct{ Key }

func (Add) Table() string { return "cron_key" }

// Remove deletes a key; the unit fails with commit.ErrFenced when no key has the name.
type Remove struct{ Name string }

func (Remove) Table() string { return "cron_key" }

// Fence makes the write depend on the row.
func (r Remove) Fence() (string, int64) { return r.Name, 0 }

// domain separates the hashes of these secrets from others.
const domain = "cron-key"

// Issuer creates and removes keys for an operator. All fields are required.
type Issuer struct {
	Changes admin.Changes // of topic change.CronKeys
	Ring    *keyring.Ring
}

// Add creates a key and returns the value of its header, which cannot be read again.
//
// Errors: INVALID_FIELD for a name that is not 1 to 64 letters, digits, _ and -, RECORD_ALREADY_EXIST for one that is
// taken.
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

// Remove revokes a key, on every node within a second; RECORD_NOT_FOUND when no key has the name.
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

// Cache is the node's snapshot: Reload reads the keys, and Follow handles notes of topic change.CronKeys. It is safe
// for concurrent use.
type Cache struct {
	*change.Snapshot[map[string]keyring.Sum] // by name

	hasher clientkey.Hasher
}

// NewCache returns a Cache over a store. It has no keys until the first Reload.
func NewCache(store Store, hasher clientkey.Hasher) *Cache {
	load := func(ctx context.Context) (*map[string]keyring.Sum, error) {
		keys, err := store.Keys(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload cron keys: %w", err)
		}
		next := make(map[string]keyring.Sum, len(keys))
		for _, k := range keys {
			next[k.Name] = k.Hash
		}
		return &next, nil
	}
	return &Cache{change.NewSnapshot(&map[string]keyring.Sum{}, load, nil), hasher}
}

// Client returns the name of the client with this header, and false for any other text.
func (l *Cache) Client(header string) (name string, ok bool) {
	name, secret, ok := clientkey.Split(header)
	var stored []keyring.Sum
	if hash, known := (*l.Current())[name]; known {
		stored = append(stored, hash)
	}
	if !clientkey.Matches(l.hasher, domain, name, secret, stored...) || !ok {
		return "", false
	}
	return name, true
}
