package kit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// shelf is a place for files; die has Put store its file and then fail, as a process
// does that dies behind it.
type shelf struct {
	files map[string][]byte
	die   bool
}

func newShelf() *shelf { return &shelf{files: map[string][]byte{}} }

func (s *shelf) Put(_ context.Context, key string, content []byte) error {
	s.files[key] = bytes.Clone(content)
	if s.die {
		return errors.New("dead")
	}
	return nil
}

func (s *shelf) Delete(_ context.Context, key string) error {
	delete(s.files, key)
	return nil
}

func (s *shelf) names() []string { return slices.Sorted(maps.Keys(s.files)) }

// read proves the files in order.
func (s *shelf) read(t *testing.T) (*kit.Archives, error) {
	t.Helper()
	a := &kit.Archives{}
	for _, name := range s.names() {
		if err := a.Add(auditKey, name, s.files[name]); err != nil {
			return a, err
		}
	}
	return a, nil
}

// aged is a trail of 20 rows, ten of them transfers, and four checkpoints.
func aged(t *testing.T, db *persistence.DB) (l *trail, marks []audit.Anchor) {
	l = newTrail(t, db)
	mark := audit.Anchor{}
	for i := range 4 {
		l.adds(3)
		for n := range 2 {
			storetest.Must(t, l.Commit(t.Context(), audit.Record{At: l.now, Action: ledger.ActionTransfer,
				Target: fmt.Sprintf("t%d%d", i, n), Detail: "digest", Outcome: audit.Success}))
		}
		mark = l.mark(mark)
		marks = append(marks, mark)
		l.now = l.now.Add(time.Hour)
	}
	return l, marks
}

func (l *trail) archive(s *shelf, before time.Time) (audit.Archive, error) {
	return kit.NewAudit(l.DB).Archive(l.t.Context(), auditKey, l.now, before, s, s.names())
}

// Rows that are old leave into files, and the history goes on from there unbroken.
func TestAuditArchive(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l, marks := aged(t, db)
		s, start := newShelf(), time.Unix(1_700_000_000, 0)
		plan, err := kit.NewAudit(db).Archive(t.Context(), auditKey, l.now, start.Add(2*time.Hour), nil, nil)
		if plan.Rows != 10 || err != nil || len(s.files) != 0 {
			t.Errorf("a dry run tells %+v, %v", plan, err)
		}
		l.verifies(20, marks[0])
		for i, want := range []int64{10, 0} {
			if a, err := l.archive(s, start.Add(2*time.Hour)); a.Rows != want || err != nil || a.Counter != int64(1-i) {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		l.verifies(10, marks[3])
		storetest.Fails(t, storetest.Err(kit.NewAudit(db).VerifySince(t.Context(), auditKey, marks[0])), "")
		files, err := s.read(t)
		if err != nil || files.Rows != 10 || files.First != 1 {
			t.Fatalf("%+v, %v", files, err)
		}
		v, err := kit.NewAudit(db).VerifySince(t.Context(), auditKey, marks[0], files)
		if v.Anchored != 1 || v.Rows != 10 || v.Archive.Counter != 1 || err != nil {
			t.Errorf("%+v, %v", v, err)
		}
		forged := audit.Anchor{Counter: 1, MAC: bytes.Repeat([]byte{1}, 32)}
		storetest.Is(t, storetest.Err(kit.NewAudit(db).VerifySince(t.Context(), auditKey, forged, files)), kit.ErrTampered)
		// The trail goes on, also after all of it has left but its newest checkpoint.
		l.adds(2)
		five := l.mark(marks[3])
		if a, err := l.archive(s, l.now.Add(time.Hour)); a.Counter != 2 || a.Rows != 12 || err != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		l.adds(1)
		six := l.mark(five)
		l.verifies(1, six)
		if files, err = s.read(t); err != nil || files.Rows != 22 {
			t.Fatalf("%+v, %v", files, err)
		}
		if v, err = kit.NewAudit(db).VerifySince(t.Context(), auditKey, marks[2], files); v.Anchored != 3 || err != nil {
			t.Errorf("%+v, %v", v, err)
		}
		seals, err := money.NewLedger(db).Audited(t.Context(), ledger.Seal{})
		if len(seals) != 8 || err != nil || seals[0].ID != "t00" || seals[7].ID != "t31" {
			t.Errorf("the proof of the ledger sees %v, %v", seals, err)
		}
	})
}

// A removal from the files, from the rows that name them, or from the rows that are kept, is
// noticed.
func TestAuditArchiveTampering(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l, _ := aged(t, db)
		s, start := newShelf(), time.Unix(1_700_000_000, 0)
		for i := range 3 {
			storetest.Value(l.archive(s, start.Add(time.Duration(i+1)*time.Hour)))(t)
		}
		names := s.names()
		if len(names) != 3 {
			t.Fatalf("files %v", names)
		}
		for what, change := range map[string]func(f map[string][]byte){
			"a byte":         func(f map[string][]byte) { f[names[1]][len(f[names[1]])/2] ^= 1 },
			"the end":        func(f map[string][]byte) { f[names[1]] = f[names[1]][:len(f[names[1]])-9] },
			"one is missing": func(f map[string][]byte) { delete(f, names[1]) },
			"two are one":    func(f map[string][]byte) { f[names[1]] = f[names[0]] },
			"another key": func(f map[string][]byte) {
				file, err := kit.ReadArchive(auditKey, f[names[1]])
				storetest.Must(t, err)
				_, f[names[1]], err = file.Seal([]byte("another"), kit.ArchiveRow{})
				storetest.Must(t, err)
			},
		} {
			broken := newShelf()
			for n, content := range s.files {
				broken.files[n] = bytes.Clone(content)
			}
			change(broken.files)
			if files, err := broken.read(t); !errors.Is(err, kit.ErrTampered) {
				t.Errorf("%s: %+v, %v", what, files, err)
			}
		}
		// A last checkpoint that was sealed without the key does not pass either.
		last := storetest.Value(kit.ReadArchive(auditKey, s.files[names[2]]))(t)
		_, content, err := last.Seal([]byte("another"), kit.ArchiveRow{})
		storetest.Must(t, err)
		storetest.Is(t, storetest.Err(kit.ReadArchive(auditKey, content)), kit.ErrTampered, "a file of another key")
		// A later file alone is proven against the row that names it.
		late := &kit.Archives{}
		storetest.Must(t, late.Add(auditKey, names[2], s.files[names[2]]))
		if _, err := kit.NewAudit(db).VerifySince(t.Context(), auditKey, audit.Anchor{}, late); err != nil ||
			late.First != 3 {
			t.Errorf("the last file alone: %v", err)
		}
		for what, statements := range map[string][2]string{
			"a row left early": {"DELETE FROM audit WHERE seq = 16", "INSERT INTO audit SELECT * FROM kept"},
			"a transfer that left": {"DELETE FROM audit_left WHERE seq = 4",
				"INSERT INTO audit_left SELECT * FROM kept_left"},
			"another digest": {"UPDATE audit_left SET detail = 'other' WHERE seq = 4",
				"UPDATE audit_left SET detail = 'digest'"},
			"the last archive": {"DELETE FROM audit_archive WHERE counter = 3",
				"INSERT INTO audit_archive SELECT * FROM kept_archive WHERE counter = 3"},
			"a head": {"UPDATE audit_archive SET row_count = 4 WHERE counter = 2",
				"UPDATE audit_archive SET row_count = 5 WHERE counter = 2"},
		} {
			persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit WHERE seq = 16")
			persistencetest.Exec(t, db, "CREATE TABLE kept_left AS SELECT * FROM audit_left WHERE seq = 4")
			persistencetest.Exec(t, db, "CREATE TABLE kept_archive AS SELECT * FROM audit_archive")
			persistencetest.Exec(t, db, statements[0])
			l.broken(what, audit.Anchor{})
			persistencetest.Exec(t, db, statements[1])
			for _, table := range []string{"kept", "kept_left", "kept_archive"} {
				persistencetest.Exec(t, db, "DROP TABLE "+table)
			}
			l.verifies(5, audit.Anchor{})
		}
		// A broken chain is not archived.
		persistencetest.Exec(t, db, "UPDATE audit SET detail = 'forged' WHERE seq = 17")
		if a, err := l.archive(s, l.now.Add(time.Hour)); !errors.Is(err, kit.ErrTampered) || len(s.files) != 3 {
			t.Errorf("%+v, %v, %d files", a, err, len(s.files))
		}
	})
}

// A process dies at either place; the next one loses and doubles nothing.
func TestAuditArchiveCutShort(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l, marks := aged(t, db)
		s, start := newShelf(), time.Unix(1_700_000_000, 0)
		s.die = true
		if _, err := l.archive(s, start.Add(time.Hour)); err == nil || len(s.files) != 1 {
			t.Fatalf("%v, %v", err, s.names())
		}
		left := s.names()[0]
		l.verifies(20, marks[0])
		s.die = false
		persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit")
		persistencetest.Exec(t, db, "CREATE TABLE kept_checkpoint AS SELECT * FROM audit_checkpoint")
		if a, err := l.archive(s, start.Add(2*time.Hour)); a.Rows != 10 || err != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		if names := s.names(); len(names) != 1 || names[0] == left {
			t.Errorf("files %v; %s was left by the process that died", names, left)
		}
		// Behind the row, before or within the removal.
		persistencetest.Exec(t, db, "INSERT INTO audit SELECT * FROM kept WHERE seq IN (6, 7, 8, 9, 10)")
		persistencetest.Exec(t, db, "INSERT INTO audit_checkpoint SELECT * FROM kept_checkpoint WHERE counter = 2")
		persistencetest.Exec(t, db, "DELETE FROM audit_left WHERE seq > 5")
		l.verifies(10, marks[2])
		storetest.Equal(t, storetest.Value(kit.NewAudit(db).Older(t.Context(), start.Add(2*time.Hour)))(t), 0)
		storetest.Equal(t, storetest.Value(l.archive(s, start.Add(2*time.Hour)))(t).Counter, 0)
		l.verifies(10, marks[2])
		storetest.Equal(t, storetest.Value(db.Conn(t.Context()).NewSelect().Table("audit").Count(t.Context()))(t), 10)
		storetest.Equal(t, len(storetest.Value(money.NewLedger(db).Audited(t.Context(), ledger.Seal{}))(t)), 8)
		storetest.Equal(t, storetest.Value(s.read(t))(t).Rows, 10)
	})
}
