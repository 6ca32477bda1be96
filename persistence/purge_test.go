package persistence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/persistencetest"
)

// A table without an index for its age is looked through part by part, and then
// from the beginning again.
func TestPurgeByParts(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, guards := t.Context(), account.NewPasswordGuards(db)
		at := time.UnixMilli(1_700_000_000_000)
		const all = engine.PurgeLook + 10
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			for from := 0; from < all; from += 1000 {
				var ws []commit.Write
				for i := from; i < min(from+1000, all); i++ {
					until := at.Add(time.Hour)
					if i%1000 == 5 || i >= engine.PurgeLook { // one in a thousand, and all of the second part
						until = at
					}
					ws = append(ws, password.SaveGuard{Guard: password.Guard{Key: fmt.Sprintf("%06d", i)},
						Until: until})
				}
				if err := db.Commit(ctx, ws...); err != nil {
					return err
				}
			}
			return nil
		}))
		left := func() int {
			n := storetest.Value(db.Conn(ctx).NewSelect().Table("password_guard").Count(ctx))(t)
			return int(n)
		}
		for i, want := range []int{all - engine.PurgeLook/1000, all - engine.PurgeLook/1000 - 10,
			all - engine.PurgeLook/1000 - 10} {
			storetest.Must(t, guards.Purge(ctx, at.Add(time.Minute)))
			storetest.Equal(t, left(), want, i+1)
		}
		storetest.Must(t, guards.Purge(ctx, at.Add(2*time.Hour)))
		storetest.Equal(t, left(), 0)
	})
}
