package commit

import (
	"context"
	"errors"
)

type recordedKey struct{}

var errRehearsed = errors.New("commit: the rehearsal is over")
var errInside = errors.New("commit: a part of a transaction cannot be rolled back")

// Rehearse runs fn in its own transaction, rolls it back, and returns the writes that fn would have committed.
// Functions that fn passed to After never run. The errors are those of fn and of the database. Rehearse does not work
// inside InTx.
func Rehearse(ctx context.Context, c Committer, fn func(ctx context.Context) error) ([]Write, error) {
	if Inside(ctx) {
		return nil, errInside
	}
	ctx, seen := Recorded(ctx)
	err := c.InTx(ctx, func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return errRehearsed
	})
	if errors.Is(err, errRehearsed) {
		return *seen, nil
	}
	return nil, err
}

// Recorded returns a context for InTx, and the writes that join its transaction, even if it is rolled back.
func Recorded(ctx context.Context) (context.Context, *[]Write) {
	seen := new([]Write)
	return context.WithValue(ctx, recordedKey{}, seen), seen
}

// Joined is for implementations of Committer: it records writes that joined the transaction of ctx.
func Joined(ctx context.Context, writes []Write) {
	if seen, is := ctx.Value(recordedKey{}).(*[]Write); is {
		*seen = append(*seen, writes...)
	}
}
