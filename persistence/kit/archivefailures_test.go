package kit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/audit"
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
	persistencetest.Fails(t, db, "audit audit_archive audit_checkpoint", func(ctx context.Context) error {
		a, err := kit.NewAudit(db).Archive(ctx, auditKey, l.now, start.Add(2*time.Hour), newShelf(), nil)
		if (a.Counter != 0) != (err == nil) {
			t.Errorf("%+v, %v", a, err)
		}
		return err
	})
	l.verifies(10, marks[3])
}

// Older counts the rows that an archive would take.
func TestOlderAuditRows(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, _ := aged(t, db)
	start := time.Unix(1_700_000_000, 0)
	older := func(after time.Duration) (n int64) {
		t.Helper()
		persistencetest.Fails(t, db, "audit audit_archive", func(ctx context.Context) (err error) {
			n, err = kit.NewAudit(db).Older(ctx, start.Add(after))
			return err
		})
		return n
	}
	for after, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, time.Millisecond: 5, time.Hour: 5,
		2 * time.Hour: 10, 9 * time.Hour: 20} {
		if n := older(after); n != want {
			t.Errorf("%v: %d rows, want %d", after, n, want)
		}
	}
	s := newShelf()
	if _, err := l.archive(s, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if n := older(2 * time.Hour); n != 5 {
		t.Errorf("after an archive: %d rows, want 5", n)
	}
}

// A row of an archive that is missing or damaged is noticed, also where it is not proven by the key.
func TestDamagedArchiveRows(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for _, statement := range []string{"DELETE FROM audit_archive WHERE counter = 1",
		"UPDATE audit_archive SET heads = 'x' WHERE counter = 2"} {
		db := persistencetest.SQLite(t)
		l, _ := aged(t, db)
		s := newShelf()
		for _, after := range []time.Duration{time.Hour, 2 * time.Hour} {
			if _, err := l.archive(s, start.Add(after)); err != nil {
				t.Fatal(err)
			}
		}
		persistencetest.Exec(t, db, statement)
		if n, err := kit.NewAudit(db).Older(t.Context(), start.Add(3*time.Hour)); !errors.Is(err, kit.ErrTampered) || n != 0 {
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
			plan, err := kit.NewAudit(db).Archive(t.Context(), auditKey, l.now, before, nil, nil)
			if err != nil || plan.Rows != int64(want) {
				t.Errorf("before %v: %d of %d rows, %v", before.Sub(at), plan.Rows, n, err)
			}
		}
	}
}
