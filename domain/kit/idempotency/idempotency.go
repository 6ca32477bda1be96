// Package idempotency stores the responses of operations that must not run twice (decision D-EXT-02, the header
// Idempotency-Key): the key, its request and its response. The row commits with the effect, so a crash leaves neither
// an effect without its response nor a stuck key.
package idempotency

import (
	"context"
	"time"
)

// Retention is how long a response is replayed, and SecretRetention how long one with a secret is.
const (
	Retention       = 24 * time.Hour
	SecretRetention = 10 * time.Minute
)

// Kept is how long a response is stored after Record.At.
const Kept = 48 * time.Hour

// Record is the stored response of one key. Its id is the keyed hash of caller, method, route template and key; the
// response is sealed with Data(ID).
type Record struct {
	ID       string
	BodyHash [32]byte  // SHA-256 of the raw body
	At       time.Time // earlier than the response if it holds a secret, so that it is purged earlier
	Sealed   []byte
}

// Data is the associated data under which a response is sealed.
func Data(id string) []byte { return []byte("idempotency/" + id) }

// Save inserts a response. The unit is rejected with RECORD_ALREADY_EXIST if the key has one.
type Save struct{ Record }

func (Save) Table() string { return "idempotency" }

// Store reads responses. It is safe for concurrent use.
type Store interface {
	// Find reads the response of a key that is not older than since; RECORD_NOT_FOUND if there is none.
	Find(ctx context.Context, id string, since time.Time) (Record, error)
	// Purge deletes the responses older than before.
	Purge(ctx context.Context, before time.Time) error
}
