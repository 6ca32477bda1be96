package persistence

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"

	"castellan/domain/kit/audit"
)

// AuditState proves the last checkpoint: its MAC, the one before it, and that no chain
// is shorter than it says. It reads no row of the audit; what is inside of the chains
// VerifyAuditSince proves.
func (db *DB) AuditState(ctx context.Context, key []byte) (s audit.State, err error) {
	last, err := db.checkpoint(ctx, "counter > 0")
	if err != nil || last.Counter == 0 {
		return s, err
	}
	s = audit.State{Last: last.anchor(), At: at(last.At)}
	switch err := db.proveLast(ctx, key, last); {
	case errors.Is(err, ErrTampered):
		s.Broken = err.Error()
	case err != nil:
		return audit.State{}, err
	}
	return s, nil
}

func (db *DB) proveLast(ctx context.Context, key []byte, last checkpointRow) error {
	gone, err := db.left(ctx, key)
	if err != nil {
		return err
	}
	before, err := db.checkpoint(ctx, "counter = ?", last.Counter-1)
	if err != nil {
		return err
	}
	previous := before.Hash
	if last.Counter == gone.last.Mark+1 {
		previous = gone.last.MarkHash
	} else if before.Counter != last.Counter-1 {
		return fmt.Errorf("%w: checkpoint %d is missing", ErrTampered, last.Counter-1)
	}
	if !hmac.Equal(last.Hash, last.sum(macOf(key), previous)) {
		return fmt.Errorf("%w: checkpoint %s", ErrTampered, last.ID)
	}
	heads, err := db.heads(ctx)
	if err != nil {
		return err
	}
	return last.precedes(gone.with(heads))
}
