package commit

import (
	"context"
	"errors"
)

type rehearsed struct{ writes []Write }

type rehearsedKey struct{}

var (
	errRehearsed = errors.New("commit: the rehearsal is over")
	errInside    = errors.New("commit: a part of a transaction cannot be rolled back")
)

// Rehearse runs fn in its own transaction, rolls it back, and returns the writes that fn would have committed.
// Functions that fn passed to After never run. The errors are those of fn and of the database. Rehearse does not work
// inside InTx.
func Rehearse(ctx context.Context, c Committer, fn func(ctx context.Context) error) ([]Write, error) {
	if Inside(ctx) {
		return nil, errInside
	}
	var seen rehearsed
	err := c.InTx(context.WithValue(ctx, rehearsedKey{}, &seen), func(ctx context.Context) error {
		if err := fn(ctx); err != nil {
			return err
		}
		return errRehearsed
	})
	if errors.Is(err, errRehearsed) {
		return seen.writes, nil
	}
	return nil, err
}

// Rehearsed is for implementations of Committer: it records writes that joined the transaction of ctx, if that is a
// rehearsal.
func Rehearsed(ctx context.Context, writes []Write) {
	if seen, is := ctx.Value(rehearsedKey{}).(*rehearsed); is {
		seen.writes = append(seen.writes, writes...)
	}
}
