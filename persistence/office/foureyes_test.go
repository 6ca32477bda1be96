package office_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/access/device"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/domain/office/foureyes/foureyestest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/kit"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

func TestFourEyesStore(t *testing.T) {
	persistencetest.RunBoth(t, foureyestest.Run, func(db *persistence.DB) foureyes.Store { return office.NewFourEyes(db) },
		"four_eyes")
}

// The list and its filter are read from an index.
func TestFourEyesAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		q := record.Filtered(db.Conn(t.Context()).NewSelect().Model((*office.FourEyesRow)(nil)),
			office.FourEyesFilters(foureyes.Query{Status: foureyes.Pending, Now: time.Now()})).OrderExpr("id DESC").Limit(2)
		if plan := persistencetest.Explain(t, db, q); !strings.Contains(plan, "four_eyes_status") {
			t.Errorf("the plan does not use the index:\n%s", plan)
		}
	})
}

// Two accounts have a device in common when one key is registered in both.
func TestSharedDevices(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := access.NewDevices(db), t.Context()
		for i, d := range [][3]string{{"u1", "k1"}, {"u1", "k2"}, {"u2", "k2"}, {"u3", "k3"}} {
			persistencetest.Exec(t, db,
				`INSERT INTO device (id, user_id, public_key, brand, model, description, platform, status,
				created_at, last_used_at) VALUES ('d`+string(rune('0'+i))+`', '`+d[0]+`', '`+d[1]+`', '', '', '', '',
				'`+string(device.Active)+`', 0, 0)`)
		}
		for pair, want := range map[[2]string]bool{{"u1", "u2"}: true, {"u2", "u1"}: true, {"u1", "u3"}: false,
			{"u3", "u2"}: false, {"u4", "u5"}: false} {
			got, err := s.Shared(ctx, pair[0], pair[1])
			storetest.Must(t, err)
			if got != want {
				t.Errorf("%v: %t", pair, got)
			}
		}
	})
}

// A rehearsal tells what would have been written, and leaves nothing.
func TestRehearsal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, row, ran := t.Context(), audit.Record{At: time.Now(), Action: "REHEARSED"}, false
		act := func(ctx context.Context) error {
			commit.After(ctx, func() { ran = true })
			return db.InTx(ctx, func(ctx context.Context) error { return db.Commit(ctx, row) })
		}
		writes, err := commit.Rehearse(ctx, db, act)
		storetest.Must(t, err)
		storetest.Same(t, writes, []commit.Write{row})
		no := fault.New(fault.InvalidState, "no")
		if _, err := commit.Rehearse(ctx, db, func(ctx context.Context) error {
			return errors.Join(act(ctx), no)
		}); !errors.Is(err, no) {
			t.Errorf("a rehearsal that is refused: %v", err)
		}
		if n, err := kit.NewAudit(db).Verify(ctx, []byte("audit key of the test")); n != 0 || err != nil || ran {
			t.Errorf("%d rows are left, %v; what waits for a commit ran: %t", n, err, ran)
		}
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			if _, err := commit.Rehearse(ctx, db, act); err == nil {
				t.Error("a part of a transaction was rehearsed")
			}
			return nil
		}))
	})
}
