package kit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

var auditKey = []byte("audit key of the test")

// trail is an audit trail of which checkpoints are made, a minute apart.
type trail struct {
	*persistence.DB
	t   *testing.T
	now time.Time
}

func newTrail(t *testing.T, db *persistence.DB) *trail {
	return &trail{db, t, time.Unix(1_700_000_000, 0)}
}

func (l *trail) adds(rows int) {
	l.t.Helper()
	for i := range rows {
		storetest.Must(l.t, l.Commit(l.t.Context(), audit.Record{At: l.now, Action: fmt.Sprint("A", i),
			Outcome: audit.Success}))
	}
}

// marks makes a checkpoint a minute later.
func (l *trail) marks(since audit.Anchor) (audit.Anchor, error) {
	l.now = l.now.Add(time.Minute)
	return kit.NewAudit(l.DB).Checkpoint(l.t.Context(), l.now, auditKey, since, false)
}

func (l *trail) mark(since audit.Anchor) audit.Anchor {
	l.t.Helper()
	a := storetest.Value(l.marks(since))(l.t)
	storetest.Equal(l.t, a.Counter, since.Counter+1, "checkpoint", "after", since.Counter)
	return a
}

func (l *trail) verifies(rows int64, atLeast audit.Anchor) {
	l.t.Helper()
	v, err := kit.NewAudit(l.DB).VerifySince(l.t.Context(), auditKey, atLeast)
	if v.Rows != rows || err != nil || v.Anchored != atLeast.Counter {
		l.t.Errorf("%+v, %v; want %d rows", v, err, rows)
	}
}

func (l *trail) broken(what string, atLeast audit.Anchor) {
	l.t.Helper()
	if v, err := kit.NewAudit(l.DB).VerifySince(l.t.Context(), auditKey, atLeast); !errors.Is(err, kit.ErrTampered) {
		l.t.Errorf("%s: %+v, %v", what, v, err)
	}
}

func TestAuditNoticesTampering(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		l.adds(20)
		one := l.mark(audit.Anchor{})
		l.verifies(20, audit.Anchor{})
		l.verifies(20, one)
		persistencetest.Exec(t, db, "UPDATE audit SET detail = 'forged' WHERE seq = 7")
		l.broken("a changed row", audit.Anchor{})
		persistencetest.Exec(t, db, "UPDATE audit SET detail = '' WHERE seq = 7")
		l.verifies(20, one)

		// A trail with its end cut off is not certified.
		persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit WHERE seq > 15")
		persistencetest.Exec(t, db, "DELETE FROM audit WHERE seq > 15")
		l.broken("a cut end", audit.Anchor{})
		if made, err := l.marks(one); !errors.Is(err, kit.ErrTampered) {
			t.Errorf("a shorter trail got checkpoint %v, %v", made, err)
		}
		persistencetest.Exec(t, db, "INSERT INTO audit SELECT * FROM kept")
		l.verifies(20, one)
	})
}

// The audit's attack: the newest rows go together with the checkpoints that name them.
func TestAuditNoticesCutCheckpoints(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		l.adds(10)
		one := l.mark(audit.Anchor{})
		l.adds(5)
		two := l.mark(one)
		l.adds(5)
		three := l.mark(two)
		if v, err := kit.NewAudit(db).VerifySince(t.Context(), auditKey, two); err != nil || v.Anchored != 2 ||
			v.Newest.Counter != 3 {
			t.Errorf("%+v, %v", v, err)
		}
		persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit_checkpoint WHERE counter = 2")
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter = 2")
		l.broken("a checkpoint out of the middle", audit.Anchor{})
		persistencetest.Exec(t, db, "INSERT INTO audit_checkpoint SELECT * FROM kept")
		l.verifies(20, three)

		persistencetest.Exec(t, db, "DELETE FROM audit WHERE seq > 10")
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter > 1")
		l.broken("the end with its checkpoints, against one that was kept", three)
		l.broken("the end with its checkpoints, against one in between", two)
		l.verifies(10, one) // nothing else knows
		if made, err := l.marks(three); !errors.Is(err, kit.ErrTampered) {
			t.Errorf("a process that made checkpoint 3 then made %v, %v", made, err)
		}
	})
}

// Another history, whole in itself, cannot stand in for the published one.
func TestAuditNoticesAnotherHistory(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		l.adds(10)
		one := l.mark(audit.Anchor{})
		published := l.mark(one)
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter = 2")
		l.verifies(10, l.mark(one))
		l.broken("another second checkpoint", published)
		if made, err := l.marks(published); !errors.Is(err, kit.ErrTampered) {
			t.Errorf("the process that made the published one then made %v, %v", made, err)
		}
	})
}

// Several nodes make one checkpoint between them, and the last one of a process is
// made in any case.
func TestCheckpointsOfManyNodes(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		l.adds(3)
		made := make([]audit.Anchor, 8)
		storetest.Race(t, len(made), "", func(i int) (err error) {
			made[i], err = kit.NewAudit(db).Checkpoint(t.Context(), l.now, auditKey, audit.Anchor{}, false)
			return err
		})
		n := 0
		for _, a := range made {
			n += int(a.Counter)
		}
		storetest.Equal(t, n, 1, made)
		if a, err := kit.NewAudit(db).Checkpoint(t.Context(), l.now, auditKey, audit.Anchor{}, true); err != nil ||
			a.Counter != 2 {
			t.Errorf("at the end: %v, %v", a, err)
		}
		l.verifies(3, audit.Anchor{})
	})
}

// A node makes a checkpoint if the one before is 30 seconds old. The last one of a process does not wait.
func TestCheckpointPause(t *testing.T) {
	db := persistencetest.SQLite(t)
	l := newTrail(t, db)
	l.adds(1)
	one := l.mark(audit.Anchor{})
	for _, c := range []struct {
		after time.Duration
		last  bool
		want  int64
	}{{0, false, 0}, {29_999 * time.Millisecond, false, 0}, {30 * time.Second, false, 2}, {30 * time.Second, true, 3}} {
		a := storetest.Value(kit.NewAudit(db).Checkpoint(t.Context(), l.now.Add(c.after), auditKey, one, c.last))(t)
		storetest.Equal(t, a.Counter, c.want, c.after)
	}
	storetest.Equal(t, counted(t, db, "audit_checkpoint"), 3)
}

// An empty trail has no checkpoint. A failed read or write makes none.
func TestCheckpointFailures(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, store := newTrail(t, db), kit.NewAudit(db)
	if a, err := l.marks(audit.Anchor{}); err != nil || a.Counter != 0 || counted(t, db, "audit_checkpoint") != 0 {
		t.Errorf("of an empty trail: %v, %v", a, err)
	}
	l.adds(2)
	one := l.mark(audit.Anchor{})
	refuses(t, db, "INSERT", "audit_checkpoint")
	if a, err := l.marks(one); err == nil || a.Counter != 0 || !strings.Contains(err.Error(), "refused by the test") {
		t.Errorf("a refused insert: %v, %v", a, err)
	}
	persistencetest.Exec(t, db, "DROP TRIGGER refused")
	storetest.Equal(t, storetest.Value(store.Checkpoint(t.Context(), l.now, auditKey, one, false))(t).Counter, 2)
	// An unreadable checkpoint before, and one whose heads are damaged.
	persistencetest.Exec(t, db, "UPDATE audit_checkpoint SET at = 1.5 WHERE counter = 2")
	if a, err := l.marks(one); err == nil || errors.Is(err, kit.ErrTampered) || a.Counter != 0 {
		t.Errorf("an unreadable checkpoint: %v, %v", a, err)
	}
	persistencetest.Exec(t, db, "UPDATE audit_checkpoint SET at = 1, heads = 'x' WHERE counter = 2")
	if a, err := l.marks(one); !errors.Is(err, kit.ErrTampered) || a.Counter != 0 {
		t.Errorf("damaged heads: %v, %v", a, err)
	}
}

// A node whose number is taken meanwhile makes no checkpoint, and reports no error.
func TestFasterNode(t *testing.T) {
	db := persistencetest.SQLite(t)
	l := newTrail(t, db)
	l.adds(2)
	persistencetest.Exec(t, db, "CREATE TRIGGER faster BEFORE INSERT ON audit_checkpoint BEGIN INSERT INTO "+
		"audit_checkpoint (id, at, heads, hash, counter) VALUES ('other', new.at, new.heads, new.hash, new.counter); END")
	storetest.Equal(t, storetest.Value(l.marks(audit.Anchor{}))(t).Counter, 0)
}

// The checkpoint of this process may have left with an archive; the first one that did not leave must be its own.
func TestCheckpointAfterArchive(t *testing.T) {
	db := persistencetest.SQLite(t)
	l, marks := aged(t, db)
	store := kit.NewAudit(db)
	if a, err := l.archive(newShelf(), l.now.Add(time.Hour)); a.Rows != 20 || err != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	state, err := store.State(t.Context(), auditKey)
	if err != nil || state.Last.String() != marks[3].String() || state.Broken != "" {
		t.Errorf("state %+v, %v", state, err)
	}
	l.verifies(0, audit.Anchor{})
	l.verifies(0, marks[3])
	if v, err := store.VerifySince(t.Context(), auditKey, marks[2]); err == nil || errors.Is(err, kit.ErrTampered) ||
		!strings.Contains(err.Error(), "checkpoint 3 is archived") {
		t.Errorf("%+v, %v", v, err)
	}
	l.adds(1)
	forged := audit.Anchor{Counter: 4, MAC: marks[2].MAC}
	if a, err := l.marks(forged); !errors.Is(err, kit.ErrTampered) || a.Counter != 0 ||
		!strings.Contains(err.Error(), "checkpoint 4 is missing or was replaced") {
		t.Errorf("%v, %v", a, err)
	}
	storetest.Equal(t, storetest.Value(l.marks(marks[2]))(t).Counter, 5)
	l.verifies(1, marks[3])
	persistencetest.Exec(t, db, "UPDATE audit_checkpoint SET at = at + 1 WHERE counter = 5")
	state, err = store.State(t.Context(), auditKey)
	if err != nil || state.Last.Counter != 5 || !strings.Contains(state.Broken, "checkpoint 0") {
		t.Errorf("state %+v, %v", state, err)
	}
	l.broken("a changed checkpoint", audit.Anchor{})
}

// The error of a verification names what is broken: a checkpoint, or the one that is missing.
func TestVerifyNamesCheckpoints(t *testing.T) {
	db := persistencetest.SQLite(t)
	_, marks := aged(t, db)
	store := kit.NewAudit(db)
	for says, atLeast := range map[string]audit.Anchor{
		"the checkpoints end at 4, before 9": {Counter: 9, MAC: marks[3].MAC},
		"checkpoint 2 is another one":        {Counter: 2, MAC: marks[3].MAC},
	} {
		v, err := store.VerifySince(t.Context(), auditKey, atLeast)
		if !errors.Is(err, kit.ErrTampered) || !strings.HasSuffix(err.Error(), says) || v.Anchored != 0 {
			t.Errorf("%s: %+v, %v", says, v, err)
		}
	}
	v, err := store.VerifySince(t.Context(), auditKey, marks[1])
	if err != nil || v.Rows != 20 || v.Anchored != 2 || v.Newest.String() != marks[3].String() || v.Archive.Counter != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	storetest.Equal(t, storetest.Value(store.Verify(t.Context(), auditKey))(t), 20)
	persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter = 2")
	if v, err := store.VerifySince(t.Context(), auditKey, audit.Anchor{}); !errors.Is(err, kit.ErrTampered) ||
		!strings.HasSuffix(err.Error(), "checkpoint 2 is missing") {
		t.Errorf("%+v, %v", v, err)
	}
}

// Checkpoints of an older version have no number. Each is proven alone, and says how long the chains were.
func TestOlderCheckpoints(t *testing.T) {
	db := persistencetest.SQLite(t)
	l := newTrail(t, db)
	l.adds(5)
	var chain string
	storetest.Must(t, db.Conn(t.Context()).NewSelect().Table("audit").Column("chain").Limit(1).Scan(t.Context(), &chain))
	add := func(id string, seq int, key []byte) {
		t.Helper()
		row := kit.CheckpointRow{ID: id, At: 1, Heads: fmt.Sprintf(`{%q:%d}`, chain, seq)}.Sealed(key, nil)
		persistencetest.Exec(t, db, "INSERT INTO audit_checkpoint (id, at, heads, hash) VALUES (?, ?, ?, ?)", row.ID, row.At,
			row.Heads, row.Hash)
	}
	for i := range 3 {
		add(fmt.Sprint("a", i), 3+i, auditKey)
	}
	l.verifies(5, audit.Anchor{})
	l.verifies(5, l.mark(audit.Anchor{}))
	for what, add := range map[string]func(){"longer": func() { add("b", 6, auditKey) },
		"another key": func() { add("b", 5, []byte("other")) }} {
		add()
		l.broken(what, audit.Anchor{})
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE id = 'b'")
	}
}
