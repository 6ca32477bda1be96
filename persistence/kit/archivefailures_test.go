package kit_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

var errShelf = errors.New("the files cannot be reached")

// locked is a place for files that takes and removes none.
type locked struct{}

func (locked) Put(context.Context, string, []byte) error { return errShelf }
func (locked) Delete(context.Context, string) error      { return errShelf }

// A file that cannot be written lets no row leave, and one that cannot be removed stops the archive.
func TestAuditArchiveWithoutFiles(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, marks := aged(t, db)
	start := time.Unix(1_700_000_000, 0)
	for name, leftover := range map[string][]string{"put": nil, "delete": {"audit-archive/left"}} {
		a, err := kit.NewAudit(db).Archive(t.Context(), auditKey, l.now, start.Add(2*time.Hour), locked{}, leftover)
		if !errors.Is(err, errShelf) || a.Counter != 0 || a.Rows != 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	l.verifies(20, marks[0])
}

// Older counts the rows that an archive would take.
func TestOlderAuditRows(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, _ := aged(t, db)
	start := time.Unix(1_700_000_000, 0)
	older := func(after time.Duration) int64 {
		t.Helper()
		n := storetest.Value(kit.NewAudit(db).Older(t.Context(), start.Add(after)))(t)
		return n
	}
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Millisecond: 5, time.Hour: 5,
		2 * time.Hour: 10, 9 * time.Hour: 20} {
		storetest.Equal(t, older(after), want, after)
	}
	s := newShelf()
	storetest.Value(l.archive(s, start.Add(time.Hour)))(t)
	storetest.Equal(t, older(2*time.Hour), 5, "after an archive")
}

// A row of an archive that is missing or damaged is noticed, also where it is not proven by the key.
func TestDamagedArchiveRows(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for statement, says := range map[string]string{"DELETE FROM audit_archive WHERE counter = 1": "archive 1 is missing",
		"UPDATE audit_archive SET heads = 'x' WHERE counter = 2": "the row of archive 2"} {
		db := persistencetest.SQLite(t)
		l, _ := aged(t, db)
		s := newShelf()
		for _, after := range []time.Duration{time.Hour, 2 * time.Hour} {
			storetest.Value(l.archive(s, start.Add(after)))(t)
		}
		persistencetest.Exec(t, db, statement)
		if n, err := kit.NewAudit(db).Older(t.Context(), start.Add(3*time.Hour)); !errors.Is(err, kit.ErrTampered) ||
			!strings.HasSuffix(err.Error(), says) || n != 0 {
			t.Errorf("%s: %d, %v", statement, n, err)
		}
		if a, err := l.archive(s, start.Add(3*time.Hour)); !errors.Is(err, kit.ErrTampered) || a.Rows != 0 {
			t.Errorf("%s: %+v, %v", statement, a, err)
		}
	}
}

// An archive takes every old row, whether these fill pages of 1000 rows or not, and none of its instant or later.
func TestArchiveTakesEveryOldRow(t *testing.T) {
	for _, n := range []int{999, 1000, 1001} {
		db := persistencetest.SQLite(t)
		l := newTrail(t, db)
		l.adds(n)
		at := l.now
		mark := l.mark(audit.Anchor{}) // a minute later
		l.adds(2)
		l.mark(mark)
		for before, want := range map[time.Time]int{at: 0, at.Add(time.Millisecond): n} {
			plan := storetest.Value(kit.NewAudit(db).Archive(t.Context(), auditKey, l.now, before, nil, nil))(t)
			storetest.Equal(t, plan.Rows, int64(want), before.Sub(at), n)
		}
	}
}

// refuses has every statement of a kind on a table fail, such as INSERT on audit.
func refuses(t *testing.T, db *persistence.DB, statement, table string) {
	t.Helper()
	persistencetest.Exec(t, db, "CREATE TRIGGER refused BEFORE "+statement+" ON "+table+
		" BEGIN SELECT RAISE(ABORT, 'refused by the test'); END")
}

func counted(t *testing.T, db *persistence.DB, table string) int64 {
	t.Helper()
	n := storetest.Value(db.Conn(t.Context()).NewSelect().Table(table).Count(t.Context()))(t)
	return n
}

// Each step of an archive reports its failure, and the next archive completes it. The rows leave exactly once.
func TestArchiveStepsFail(t *testing.T) {
	before := time.Unix(1_700_000_000, 0).Add(2 * time.Hour) // ten rows, two checkpoints, four transfers
	for name, c := range map[string]struct {
		statement, table  string
		archives, rows    int64 // after the failure
		checkpoints, kept int64
		again             int64 // rows of the next archive
	}{
		"the row of the archive": {"INSERT", "audit_archive", 0, 20, 4, 0, 10},
		"the kept transfers":     {"INSERT", "audit_left", 1, 20, 4, 0, 0},
		"the rows":               {"DELETE", "audit", 1, 20, 4, 0, 0},
		"the checkpoints":        {"DELETE", "audit_checkpoint", 1, 10, 4, 4, 0},
	} {
		db := persistencetest.SQLite(t)
		l, _ := aged(t, db)
		s := newShelf()
		refuses(t, db, c.statement, c.table)
		a, err := l.archive(s, before)
		if err == nil || !strings.Contains(err.Error(), "refused by the test") || a.Counter != 0 || a.Rows != 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		check := func(when string, want [4]int64) {
			t.Helper()
			got := [4]int64{}
			for i, table := range []string{"audit_archive", "audit", "audit_checkpoint", "audit_left"} {
				got[i] = counted(t, db, table)
			}
			storetest.Equal(t, got, want, name, when, s.names())
			storetest.Equal(t, len(s.files), 1, name, when, s.names())
		}
		check("after the failure", [4]int64{c.archives, c.rows, c.checkpoints, c.kept})
		persistencetest.Exec(t, db, "DROP TRIGGER refused")
		storetest.Equal(t, storetest.Value(l.archive(s, before))(t).Rows, c.again, name)
		check("in the end", [4]int64{1, 10, 2, 4})
		l.verifies(10, audit.Anchor{})
	}
}

// meddler is a place for files where a write of a file also changes the database.
type meddler struct {
	*shelf
	meddle func(ctx context.Context) error
}

func (m meddler) Put(ctx context.Context, key string, content []byte) error {
	return errors.Join(m.shelf.Put(ctx, key, content), m.meddle(ctx))
}

// Rows do not leave if the rows of the archives, or the rows that would leave, are damaged meanwhile.
func TestArchiveAfterDamage(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for statement, tampered := range map[string]bool{"UPDATE audit_archive SET row_count = 4 WHERE counter = 1": true,
		"UPDATE audit SET at = 1.5 WHERE seq = 6": false} {
		db := persistencetest.SQLite(t)
		l, _ := aged(t, db)
		s := newShelf()
		_, err := l.archive(s, start.Add(time.Hour))
		storetest.Must(t, err)
		m := meddler{s, func(ctx context.Context) error {
			return db.InTx(ctx,
				func(ctx context.Context) error { return storetest.Err(db.Conn(ctx).ExecContext(ctx, statement)) })
		}}
		a, err := kit.NewAudit(db).Archive(t.Context(), auditKey, l.now, start.Add(2*time.Hour), m, nil)
		if err == nil || errors.Is(err, kit.ErrTampered) != tampered || a.Rows != 0 {
			t.Errorf("%s: %+v, %v", statement, a, err)
		}
		if rows, archives := counted(t, db, "audit"), counted(t, db, "audit_archive"); rows != 15 || archives != 2 {
			t.Errorf("%s: %d rows, %d archives", statement, rows, archives)
		}
	}
}

// A row that cannot be read stops an archive before its file, and a verification.
func TestUnreadableTrail(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for statement, c := range map[string]struct{ archives, verifies, state bool }{
		"UPDATE audit SET at = 1.5 WHERE seq = 6":                 {false, false, true},
		"UPDATE audit_checkpoint SET at = 1.5 WHERE counter = 2":  {false, false, true},
		"UPDATE audit_checkpoint SET at = 1.5 WHERE counter = 3":  {false, false, false},
		"UPDATE audit_checkpoint SET at = 1.5 WHERE counter = 4":  {false, false, false},
		"UPDATE audit_archive SET row_count = 1.5":                {false, false, false},
		"UPDATE audit_left SET seq = 1.5 WHERE seq = 4":           {true, false, true},
		"UPDATE audit SET action = 'LEDGER_TRANSFER' WHERE FALSE": {true, true, true},
	} {
		db := persistencetest.SQLite(t)
		l, marks := aged(t, db)
		s := newShelf()
		_, err := l.archive(s, start.Add(time.Hour))
		storetest.Must(t, err)
		persistencetest.Exec(t, db, statement)
		store := kit.NewAudit(db)
		if v, err := store.VerifySince(t.Context(), auditKey, audit.Anchor{}); (err == nil) != c.verifies ||
			errors.Is(err, kit.ErrTampered) {
			t.Errorf("%s: verified %+v, %v", statement, v, err)
		}
		state, err := store.State(t.Context(), auditKey)
		if (err == nil) != c.state || state.Broken != "" || (state.Last.String() == marks[3].String()) != c.state {
			t.Errorf("%s: state %+v, %v", statement, state, err)
		}
		a, err := l.archive(s, start.Add(9*time.Hour))
		if (err == nil) != c.archives || (a.Rows == 15) != c.archives || (len(s.files) == 2) != c.archives {
			t.Errorf("%s: %+v, %v, files %v", statement, a, err, s.names())
		}
	}
}

// A file has at most 20,000 rows; the next file has the rest. Both are proven together.
func TestRowsOfAFile(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, s := newTrail(t, db), newShelf()
	rows := make([]commit.Write, 20_001)
	for i := range rows {
		rows[i] = audit.Record{At: l.now, Action: "A", Outcome: audit.Success}
	}
	storetest.Must(t, db.Commit(t.Context(), rows...))
	for _, want := range []int64{20_000, 1, 0} {
		storetest.Equal(t, storetest.Value(l.archive(s, l.now.Add(time.Hour)))(t).Rows, want)
	}
	storetest.Equal(t, counted(t, db, "audit"), 0)
	files, err := s.read(t)
	if err != nil || files.Rows != 20_001 || files.First != 1 || len(s.names()) != 2 {
		t.Errorf("%+v, %v, files %v", files, err, s.names())
	}
}

// Rows leave although no checkpoint leaves with them, and although there is none at all.
func TestArchiveWithoutCheckpoints(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l, s := newTrail(t, db), newShelf()
		for i := range 2 {
			l.adds(3)
			if a, err := l.archive(s, l.now.Add(time.Hour)); err != nil || a.Rows != 3 || a.Counter != int64(i+1) {
				t.Errorf("archive %d: %+v, %v", i+1, a, err)
			}
			l.verifies(0, audit.Anchor{})
		}
		storetest.Equal(t, storetest.Value(s.read(t))(t).Rows, 6)
	})
}

// A role that may not remove audit rows, or checkpoints, is told so before an archive.
func TestRoleMayRemove(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		a, undo := kit.NewAudit(db), errors.New("undo")
		if may, err := a.MayRemove(t.Context()); !may || err != nil {
			t.Errorf("the owner: %t, %v", may, err)
		}
		if !db.Postgres() {
			return
		}
		for granted, want := range map[string]bool{"audit": false, "audit_checkpoint": false,
			"audit, audit_checkpoint": true} {
			err := db.InTx(t.Context(), func(ctx context.Context) error {
				role := "test_" + strings.ToLower(rand.Text()) // roles are of the whole server
				for _, statement := range []string{"CREATE ROLE " + role, "GRANT DELETE ON " + granted + " TO " + role,
					"SET LOCAL ROLE " + role} {
					_, err := db.Conn(ctx).ExecContext(ctx, statement)
					storetest.Must(t, err)
				}
				storetest.Equal(t, storetest.Value(a.MayRemove(ctx))(t), want, granted)
				return undo
			})
			storetest.Is(t, err, undo)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if may, err := a.MayRemove(ended); may || err == nil {
			t.Errorf("without an answer: %t, %v", may, err)
		}
	})
}
