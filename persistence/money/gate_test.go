package money_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// waitingForLocks waits until that many sessions wait for locks.
func waitingForLocks(t *testing.T, db *persistence.DB, n int) {
	t.Helper()
	for got := -1; got < n; time.Sleep(time.Millisecond) {
		storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "+
			"(SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND locktype = 'transactionid'").
			Scan(t.Context(), &got))
	}
}

// A unit and a transaction of PostgreSQL lock new and known gates in one order, and gates before balances. So neither
// waits for the other in a circle.
func TestGatesAreLockedInOneOrder(t *testing.T) {
	db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
	past := money.NewTransactions(db)
	at := time.UnixMilli(1000)
	books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "1")
	gate := func(key string, version int64) transaction.PassGate {
		return transaction.PassGate{Key: key, Version: version, At: at}
	}
	storetest.Must(t, db.Commit(t.Context(), gate("b", 0)))
	lock := func(ctx context.Context, keys ...string) {
		_, err := past.Gates(ctx, keys, at, true)
		storetest.Must(t, err)
	}
	unit, other, booked := make(chan error, 1), make(chan error, 1), make(chan bool)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		lock(ctx, "b")
		go func() {
			defer close(booked)
			books(t, db, bookedDay, "pay", owned("", 1), owned("u", 1), "2", gate("b", 1))
		}()
		waitingForLocks(t, db, 1)
		_, err := db.Conn(ctx).NewRaw("SELECT 1 FROM balance FOR UPDATE").Exec(ctx)
		return err
	}))
	<-booked
	rollback := errors.New("rollback")
	storetest.Is(t, db.InTx(t.Context(), func(ctx context.Context) error {
		lock(ctx, "a")
		go func() {
			other <- db.InTx(t.Context(), func(ctx context.Context) error { lock(ctx, "a", "b"); return nil })
		}()
		waitingForLocks(t, db, 1)
		go func() { unit <- db.Commit(t.Context(), gate("a", 0), gate("b", 2)) }()
		waitingForLocks(t, db, 2)
		return rollback
	}), rollback)
	storetest.Must(t, <-other)
	storetest.Is(t, <-unit, commit.ErrFenced) // the other has made the gate a
}

// A transaction that is refused as UNAVAILABLE by its own rules is no outage: units that wait meanwhile are committed.
func TestRefusedTransactionIsNoOutage(t *testing.T) {
	db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
	past, at := money.NewTransactions(db), time.UnixMilli(1000)
	storetest.Must(t, db.Commit(t.Context(), transaction.PassGate{Key: "a", At: at}))
	units := make(chan error, 2)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		_, err := past.Gates(ctx, []string{"a"}, at, true)
		storetest.Must(t, err)
		go func() { units <- db.Commit(t.Context(), transaction.PassGate{Key: "a", Version: 1, At: at}) }()
		waitingForLocks(t, db, 1)
		go func() { units <- db.Commit(t.Context(), transaction.PassGate{Key: "b", At: at}) }()
		for db.Waiting() == 0 {
			time.Sleep(time.Millisecond)
		}
		storetest.Wants(t, db.InTx(t.Context(), func(context.Context) error {
			return fault.New(fault.Unavailable, "the account is busy")
		}), fault.Unavailable)
		return nil
	}))
	storetest.Must(t, <-units)
	storetest.Must(t, <-units)
}
