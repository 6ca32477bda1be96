package dpop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/dpop"
)

// answering is a database that answers every unit alike, and keeps the last one.
type answering struct {
	commit.Committer
	err  error
	last []commit.Write
}

func (a *answering) Commit(_ context.Context, writes ...commit.Write) error {
	a.last = writes
	return a.err
}

// Spending a proof waits for no disk. A proof that another node has used is refused, with a nonce if it named one.
func TestSpend(t *testing.T) {
	b := newBench(t)
	k, db := ecKey(t), &answering{}
	b.Commit = db
	check := func(c dpop.Claims) dpop.Proof {
		t.Helper()
		return storetest.Value(b.Check(request(signed(t, k, c))))(t)
	}
	p := check(b.claims())
	storetest.Must(t, b.Spend(t.Context(), p))
	if n := len(db.last); n != 2 || db.last[0].Table() != "device_proof" || db.last[1] != (commit.Unflushed{}) {
		t.Errorf("writes %+v", db.last)
	}
	db.err = errors.New("down")
	storetest.Is(t, b.Spend(t.Context(), p), db.err)
	nonce := func(err error) string {
		t.Helper()
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.DPoPInvalid {
			t.Fatal(err)
		}
		return f.Nonce
	}
	db.err = fmt.Errorf("commit: %w", commit.ErrFenced)
	storetest.Equal(t, nonce(b.Spend(t.Context(), p)), "", "a used proof without a nonce gets")
	old := b.claims()
	old.IssuedAt, db.last = 1, nil
	old.Nonce = nonce(b.Spend(t.Context(), check(old)))
	if old.Nonce == "" || db.last != nil {
		t.Errorf("an old proof: nonce %q, writes %+v", old.Nonce, db.last)
	}
	if again := nonce(b.Spend(t.Context(), check(old))); again == "" || again == old.Nonce || len(db.last) != 2 {
		t.Errorf("a used proof with a nonce: %q, writes %+v", again, db.last)
	}
}
