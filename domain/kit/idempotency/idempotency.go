// Package idempotency remembers the answers of operations that must not be
// carried out twice (decision D-EXT-02, the header Idempotency-Key): which
// request had which key, and what it was answered. The row commits with the
// effect, so a crash leaves neither an effect without its answer nor a key
// that is stuck.
package idempotency

import (
	"context"
	"time"
)

// Retention is how long an answer is kept and replayed.
const Retention = 24 * time.Hour

// Record is the stored answer of one key. Its id is the keyed hash of caller,
// method, route template and key; the answer is sealed with Data(ID).
type Record struct {
	ID       string
	BodyHash [32]byte // SHA-256 of the raw body
	At       time.Time
	Sealed   []byte
}

// Data is the associated data under which an answer is sealed.
func Data(id string) []byte { return []byte("idempotency/" + id) }

// Save inserts an answer. The unit is refused with RECORD_ALREADY_EXIST when
// the key has one.
type Save struct{ Record }

func (Save) Table() string { return "idempotency" }

// Store reads answers. It is safe for concurrent use.
type Store interface {
	// Find reads the answer of a key that is not older than since;
	// RECORD_NOT_FOUND when there is none.
	Find(ctx context.Context, id string, since time.Time) (Record, error)
	// Purge removes the answers older than before.
	Purge(ctx context.Context, before time.Time) error
}
