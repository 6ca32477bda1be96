package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/logtest"
	"castellan/internal/pgtest"
)

// hold locks the table of notes on a separate connection until the test releases it: every statement that writes a note
// is slow until then.
func hold(t *testing.T, dsn string) (release func()) {
	t.Helper()
	db := open(t, dsn)
	held, over, ended := make(chan error), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- db.InTx(t.Context(), func(ctx context.Context) (err error) {
			if db.Postgres() { // a transaction of SQLite begins with the lock
				_, err = db.Conn(ctx).ExecContext(ctx, "LOCK TABLE note IN ACCESS EXCLUSIVE MODE")
			}
			held <- err
			<-over
			return err
		})
	}()
	storetest.Must(t, <-held)
	return sync.OnceFunc(func() { close(over); storetest.Must(t, <-ended) })
}

// A statement of two seconds succeeds while the database is patient, and the wait is logged. The same statement of a
// request fails within its limit.
func TestPatientDatabaseAllowsSlowStatements(t *testing.T) {
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			log := logtest.Default(t)
			release := hold(t, dsn)
			defer func() { release() }()
			db := storetest.Value(Open(t.Context(), dsn, noteKinds, Options{Patient: true}))(t)
			defer db.Close()
			db.Start(func(int) State { return nil })
			inTx := func(id string) error {
				return db.InTx(t.Context(), func(ctx context.Context) error {
					ctx, cancel := db.Bound(ctx)
					defer cancel()
					_, err := db.Conn(ctx).NewInsert().Model(&noteRow{ID: id}).Exec(ctx)
					return Translate(err)
				})
			}
			writes := map[string]func(id string) error{
				"unit":        func(id string) error { return db.Commit(t.Context(), addNote{ID: id}) },
				"transaction": inTx,
			}
			for kind, write := range writes {
				timer := time.AfterFunc(2*time.Second, release)
				storetest.Must(t, write(kind+" in time"))
				timer.Stop()
				release()
				release = hold(t, dsn)
			}
			storetest.Contains(t, log.String(), "the database is slow; waiting for it", "the log says")
			release()
			log.Reset()
			db.EndPatience()
			storetest.Equal(t, log.String(), "")
			release = hold(t, dsn)
			for kind, write := range writes {
				began := time.Now()
				storetest.Wants(t, write(kind+" too late"), fault.Unavailable, kind)
				if took := time.Since(began); took > Patience/2 {
					t.Errorf("%s of a request was refused after %v", kind, took)
				}
			}
		})
	}
}

// A writer that busy timeout of the SQLite writer is reported.
func TestFailedEndOfPatienceIsLogged(t *testing.T) {
	log := logtest.Default(t)
	db := storetest.Value(Open(t.Context(), sqliteFile(t), noteKinds, Options{Patient: true}))(t)
	storetest.Must(t, db.Close())
	db.EndPatience()
	storetest.Contains(t, log.String(), "busy timeout of the SQLite writer", "the log says")
}
