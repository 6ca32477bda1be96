package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
)

// Callers that wait for a turn while the database does not answer are refused together and not one time limit after
// another.
func TestWaitersShareAnOutage(t *testing.T) {
	const limit, callers = 500 * time.Millisecond, 24
	for name, dsn := range map[string]string{"sqlite": sqliteFile(t), "postgres": pgtest.DSN(t)} {
		t.Run(name, func(t *testing.T) {
			release := hold(t, dsn)
			defer release()
			db := storetest.Value(Open(t.Context(), dsn, noteKinds, Options{Timeout: limit}))(t)
			defer db.Close()
			db.Start(func(int) State { return nil })
			began := time.Now()
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					id := string(rune('a' + i))
					err := db.InTx(t.Context(), func(ctx context.Context) error {
						ctx, cancel := db.Bound(ctx)
						defer cancel()
						_, err := db.Conn(ctx).NewInsert().Model(&noteRow{ID: id}).Exec(ctx)
						return Translate(err)
					})
					storetest.Wants(t, err, fault.Unavailable, "a caller under a lock")
				})
				all.Go(func() {
					storetest.Wants(t, db.Commit(t.Context(), addNote{ID: "u" + string(rune('a'+i))}), fault.Unavailable)
				})
			}
			all.Wait()
			// One after another they take callers / 4 limits on PostgreSQL, more on SQLite.
			if took := time.Since(began); took > callers/4*limit {
				t.Errorf("%d callers were refused after %v, with a limit of %v", 2*callers, took, limit)
			}
		})
	}
}
