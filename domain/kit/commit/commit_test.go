package commit_test

import (
	"context"
	"errors"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

type row string

func (row) Table() string { return "row" }

// transaction runs a unit and what waits for its commit.
type transaction struct{ ended error }

func (t *transaction) Commit(ctx context.Context, writes ...commit.Write) error {
	commit.Joined(ctx, writes)
	return nil
}

func (t *transaction) InTx(ctx context.Context, fn func(context.Context) error) error {
	ctx, committed := commit.Hooks(ctx)
	if t.ended = fn(ctx); t.ended == nil {
		committed()
	}
	return t.ended
}

// A function that waits for the commit runs after it, in order; without a transaction at once.
func TestAfter(t *testing.T) {
	said := ""
	say := func(text string) func() { return func() { said += text } }
	commit.After(t.Context(), say("at once"))
	if said != "at once" || commit.Inside(t.Context()) {
		t.Fatalf("%q", said)
	}
	said = ""
	var tx transaction
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Equal(t, commit.Inside(ctx), true, "not inside")
		commit.After(ctx, say("a"))
		commit.After(ctx, say("b"))
		storetest.Equal(t, said, "", "before the commit")
		return nil
	})
	storetest.Must(t, err)
	storetest.Equal(t, said, "ab")
}

// A rehearsal returns the writes and rolls back; an error ends it, and it never joins a transaction.
func TestRehearse(t *testing.T) {
	var tx transaction
	writes, err := commit.Rehearse(t.Context(), &tx, func(ctx context.Context) error {
		return errors.Join(tx.Commit(ctx, row("a")), tx.Commit(ctx, row("b"), row("c")))
	})
	if err != nil || len(writes) != 3 || writes[0] != row("a") || writes[2] != row("c") || tx.ended == nil {
		t.Errorf("%v, %v, ended with %v", writes, err, tx.ended)
	}
	refused := errors.New("refused")
	if writes, err := commit.Rehearse(t.Context(), &tx, func(context.Context) error { return refused }); writes != nil ||
		!errors.Is(err, refused) {
		t.Errorf("%v, %v", writes, err)
	}
	inside, _ := commit.Hooks(t.Context())
	storetest.Fails(t, storetest.Err(commit.Rehearse(inside, &tx, func(context.Context) error { return nil })), "")
	commit.Joined(t.Context(), []commit.Write{row("a")}) // no rehearsal: nothing happens
}

// A guard names the table of the row that it checks.
func TestGuard(t *testing.T) {
	for on, want := range map[commit.GuardedTable]string{commit.UserCredentials: "users",
		commit.AttemptBudget: "attempt_budget"} {
		storetest.Equal(t, (commit.Guard{On: on}).Table(), want)
	}
}
