package kit_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// The state of the trail tells the last checkpoint and notices what it can: a cut end,
// and a checkpoint that was changed or is missing.
func TestAuditState(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		wants := func(what string, last audit.Anchor, problem string) {
			t.Helper()
			s, err := kit.NewAudit(db).State(t.Context(), auditKey)
			storetest.Must(t, err)
			if s.Last.String() != last.String() || (problem == "") != (s.Broken == "") || !strings.Contains(s.Broken, problem) {
				t.Errorf("%s: %+v, want %s %q", what, s, last, problem)
			}
			if last.Counter > 0 && !s.At.Equal(l.now) {
				t.Errorf("%s: made at %s, want %s", what, s.At, l.now)
			}
		}
		wants("nothing yet", audit.Anchor{}, "")
		l.adds(20)
		wants("one checkpoint", l.mark(audit.Anchor{}), "")
		l.adds(5)
		one, err := kit.NewAudit(db).State(t.Context(), auditKey)
		storetest.Must(t, err)
		two := l.mark(one.Last)
		wants("two", two, "")

		persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit WHERE seq > 22")
		persistencetest.Exec(t, db, "DELETE FROM audit WHERE seq > 22")
		wants("a cut end", two, "ends at 22")
		persistencetest.Exec(t, db, "INSERT INTO audit SELECT * FROM kept")
		wants("healed", two, "")

		persistencetest.Exec(t, db, "UPDATE audit_checkpoint SET counter = 7 WHERE counter = 1")
		seven, err := kit.NewAudit(db).State(t.Context(), auditKey)
		storetest.Must(t, err)
		if seven.Last.Counter != 7 || seven.Broken == "" {
			t.Errorf("a checkpoint of another place: %+v", seven)
		}
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter = 7")
		wants("one is missing", two, "checkpoint 1 is missing")
	})
}
