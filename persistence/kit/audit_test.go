package kit_test

import (
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestFeed(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, feed := t.Context(), kit.NewChanges(db)
		before := time.Now().Add(-time.Second)
		storetest.Must(t, db.Commit(ctx, change.Note{Topic: change.MFA, Key: "a"}, change.Note{Topic: change.Keys, Key: "b"}))
		es, err := feed.Since(ctx, before)
		storetest.Must(t, err)
		if len(es) != 2 || es[0].Topic != change.MFA || es[1].ID <= es[0].ID {
			t.Errorf("feed %+v", es)
		}
		storetest.Must(t, feed.Purge(ctx, time.Now().Add(time.Minute)))
		if es, _ := feed.Since(ctx, before); len(es) != 0 {
			t.Errorf("%d notes after the purge", len(es))
		}
	})
}
