package kit

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"

	"castellan/domain/kit/audit"
	"castellan/persistence/engine"
)

// State proves the last checkpoint: its MAC, the one before it, and that no chain
// is shorter than it says. It reads no row of the audit; what is inside of the chains
// VerifySince proves.
func (s Audit) State(ctx context.Context, key []byte) (state audit.State, err error) {
	last, err := s.checkpoint(ctx, "counter > 0")
	if err != nil || last.Counter == 0 {
		return state, err
	}
	state = audit.State{Last: last.anchor(), At: engine.Time(last.At)}
	switch err := s.proveLast(ctx, key, last); {
	case errors.Is(err, ErrTampered):
		state.Broken = err.Error()
	case err != nil:
		return audit.State{}, err
	}
	return state, nil
}

func (s Audit) proveLast(ctx context.Context, key []byte, last checkpointRow) error {
	gone, err := s.left(ctx, key)
	if err != nil {
		return err
	}
	before, err := s.checkpoint(ctx, "counter = ?", last.Counter-1)
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
	heads, err := s.heads(ctx)
	if err != nil {
		return err
	}
	return last.precedes(gone.with(heads))
}
