package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/idempotency"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// repeats is an idempotency over a database, with one caller and one operation.
type repeats struct {
	*auth.Idempotent
	t  *testing.T
	db *persistence.DB
}

func newRepeats(t *testing.T) *repeats {
	db := persistencetest.SQLite(t)
	return &repeats{&auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Now: time.Now,
		Ring: keyringtest.Ring(t, time.Now)}, t, db}
}

func (r *repeats) run(ctx context.Context, key string, admit error, fn func(context.Context) (int, error)) (status int,
	body string, replayed bool, err error) {
	status, b, _, replayed, err := r.Run(ctx, rest.Caller{UserID: "u1"}, key, "POST", "/x", [32]byte{1},
		func(context.Context) error { return admit },
		func(ctx context.Context) (int, []byte, []rest.Header, error) {
			status, err := fn(ctx)
			return status, []byte("answer"), nil, err
		})
	return status, string(b), replayed, err
}

// effect writes a row and answers with a status.
func (r *repeats) effect(status int) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		return status, r.db.Commit(ctx, audit.Record{At: time.Now(), Action: "EFFECT"})
	}
}

// An answer from 400 on is kept without its effects; every smaller one with them.
func TestRefusalsHaveNoEffect(t *testing.T) {
	for status, effects := range map[int]int{200: 1, 399: 1, 400: 0, 503: 0} {
		r := newRepeats(t)
		for n := range 2 {
			got, body, replayed, err := r.run(t.Context(), "k", nil, r.effect(status))
			if got != status || body != "answer" || replayed != (n == 1) || err != nil {
				t.Errorf("%d, call %d: %d %s, replayed %t, %v", status, n, got, body, replayed, err)
			}
		}
		if got := len(persistencetest.Acts(t, r.db)); got != effects {
			t.Errorf("%d left %d effects, want %d", status, got, effects)
		}
	}
}

// A call that is not admitted neither runs nor keeps an answer.
func TestNotAdmitted(t *testing.T) {
	r := newRepeats(t)
	no := fault.New(fault.RateLimited, "no")
	_, _, _, err := r.run(t.Context(), "k", no, r.effect(200))
	storetest.Wants(t, err, fault.RateLimited)
	_, _, replayed, err := r.run(t.Context(), "k", nil, r.effect(200))
	if err != nil || replayed || len(persistencetest.Acts(t, r.db)) != 1 {
		t.Errorf("replayed %t, %v, %d effects", replayed, err, len(persistencetest.Acts(t, r.db)))
	}
}

// Of two nodes that answer one key at the same time, the later one gets a conflict and has no effect.
func TestAnsweredElsewhere(t *testing.T) {
	r := newRepeats(t)
	other := &repeats{&auth.Idempotent{Store: r.Store, Commit: r.db, Ring: r.Ring, Now: time.Now}, t, r.db}
	_, _, _, err := r.run(t.Context(), "k", nil, func(ctx context.Context) (int, error) {
		_, _, _, err := other.run(ctx, "k", nil, r.effect(200))
		storetest.Must(t, err)
		return 200, nil
	})
	var f *fault.Error
	if storetest.Wants(t, err, fault.IdempotencyConflict); errors.As(err, &f) && f.RetryAfter != time.Second {
		t.Errorf("retry after %v", f.RetryAfter)
	}
	if n := len(persistencetest.Acts(t, r.db)); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// A call beside a running one of the same key is refused; the key is free again when that one ends.
func TestRunningKey(t *testing.T) {
	r := newRepeats(t)
	no := errors.New("trouble")
	_, _, _, err := r.run(t.Context(), "k", nil, func(ctx context.Context) (int, error) {
		_, _, _, err := r.run(ctx, "k", nil, r.effect(200))
		var f *fault.Error
		if storetest.Wants(t, err, fault.IdempotencyConflict); errors.As(err, &f) && f.RetryAfter != time.Second {
			t.Errorf("retry after %v", f.RetryAfter)
		}
		return 0, no
	})
	if !errors.Is(err, no) {
		t.Error(err)
	}
	if _, _, _, err := r.run(t.Context(), "k", nil, r.effect(200)); err != nil {
		t.Error(err)
	}
}

// An answer is kept for its retention, and one that cannot be read is an error.
func TestKeptAnswers(t *testing.T) {
	r := newRepeats(t)
	now := time.Now()
	r.Now = func() time.Time { return now }
	call := func() (bool, error) {
		_, _, replayed, err := r.run(t.Context(), "k", nil, r.effect(200))
		return replayed, err
	}
	_, err := call()
	storetest.Must(t, err)
	now = now.Add(idempotency.Retention - time.Second)
	if replayed, err := call(); !replayed || err != nil {
		t.Errorf("before the end of its retention: replayed %t, %v", replayed, err)
	}
	persistencetest.Exec(t, r.db, "UPDATE idempotency SET sealed = x'00'")
	if _, err := call(); err == nil {
		t.Error("no error of an answer that cannot be opened")
	}
	if n := len(persistencetest.Acts(t, r.db)); n != 1 {
		t.Errorf("%d effects", n)
	}
	persistencetest.Exec(t, r.db, "ALTER TABLE idempotency RENAME TO broken")
	if _, err := call(); err == nil || len(persistencetest.Acts(t, r.db)) != 1 {
		t.Errorf("ran without knowing what was answered: %v", err)
	}
}
