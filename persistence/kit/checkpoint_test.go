package kit_test

import (
	"errors"
	"fmt"
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
	a, err := l.marks(since)
	storetest.Must(l.t, err)
	if a.Counter != since.Counter+1 {
		l.t.Errorf("checkpoint %d after %d", a.Counter, since.Counter)
	}
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
		if n != 1 {
			t.Errorf("%v", made)
		}
		if a, err := kit.NewAudit(db).Checkpoint(t.Context(), l.now, auditKey, audit.Anchor{}, true); err != nil ||
			a.Counter != 2 {
			t.Errorf("at the end: %v, %v", a, err)
		}
		l.verifies(3, audit.Anchor{})
	})
}

func TestAnchor(t *testing.T) {
	a := audit.Anchor{Counter: 12, MAC: make([]byte, 32)}
	if got, err := audit.ParseAnchor(a.String()); err != nil || got.String() != a.String() {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "12", "12:", "12:00", "0" + a.String()[2:], "-1" + a.String()[2:], a.String() + "0"} {
		if _, err := audit.ParseAnchor(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}
