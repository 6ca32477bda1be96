package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

// A plan made while a table was small is kept while it grows, so the planner must not join by reading whole tables.
func TestTheWriterFindsRowsByKey(t *testing.T) {
	db, err := persistence.Open(t.Context(), pgtest.DSN(t), persistence.Options{Timeout: time.Minute})
	storetest.Must(t, err)
	defer db.Close()
	err = db.Exclusive(t.Context(), func(ctx context.Context) error { _, err := persistence.Migrate(ctx, db); return err })
	storetest.Must(t, err)
	persistence.Start(db, []byte("audit key of the test"), "test")
	now := time.Now().UnixMilli()
	for _, w := range []commit.Write{
		challenge.Update{Challenge: challenge.Challenge{ID: "a", CreatedAt: now, ExpiresAt: now + 1}},
		outbox.Settle{ID: "a"},
		password.SaveGuard{Guard: password.Guard{Key: "a", Version: 1}},
		commit.Guard{On: commit.UserCredentials, Key: "a"},
	} {
		plans, err := db.ExplainWrite(t.Context(), w)
		if err != nil || len(plans) == 0 {
			t.Fatalf("%T: %d plans, %v", w, len(plans), err)
		}
		for _, plan := range plans {
			if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Index") {
				t.Errorf("%T is planned as\n%s", w, plan)
			}
		}
	}
}
