package kit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
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
		es := storetest.Value(feed.Since(ctx, before))(t)
		if len(es) != 2 || es[0].Topic != change.MFA || es[1].ID <= es[0].ID {
			t.Errorf("feed %+v", es)
		}
		storetest.Must(t, feed.Purge(ctx, time.Now().Add(time.Minute)))
		if es, _ := feed.Since(ctx, before); len(es) != 0 {
			t.Errorf("%d notes after the purge", len(es))
		}
	})
}

func TestAuditStore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s, ctx := kit.NewAudit(db), t.Context()
		start := time.UnixMilli(1_700_000_000_000).UTC()
		var want []audit.Record // newest first
		for i := range 30 {
			r := audit.Record{At: start.Add(time.Duration(i/3) * time.Millisecond), ActorID: fmt.Sprint("actor", i%2),
				UserID: fmt.Sprint("user", i%3), Action: fmt.Sprint("ACTION_", i%5),
				Target: fmt.Sprint("target", i), Outcome: audit.Success, IP: fmt.Sprint("203.0.113.", i%4*3),
				RequestID: fmt.Sprint("request", i), Detail: "O'Neil ? %"}
			if i%7 == 0 {
				r.Outcome, r.UserID = audit.Refused, ""
			}
			storetest.Must(t, db.Commit(ctx, r))
			want = append([]audit.Record{r}, want...)
		}
		everything := storetest.Value(s.List(ctx, audit.Query{}, page.Query[audit.Place]{}))(t)
		all := everything.Records
		number := func(r audit.Stored) string { return r.Target[len("target"):] }
		var got []audit.Record
		for _, r := range all {
			got = append(got, r.Record)
		}
		storetest.Same(t, got, want)
		if last := all[0]; last.Chain == "" || last.Seq != 30 || len(last.Hash) != 32 {
			t.Errorf("the newest row is %+v", last)
		}
		for name, c := range map[string]struct {
			q    audit.Query
			want []string
		}{
			"account":         {audit.Query{UserID: "user1"}, []string{"25", "22", "19", "16", "13", "10", "4", "1"}},
			"actor, action":   {audit.Query{ActorID: "actor1", Action: "ACTION_3"}, []string{"23", "13", "3"}},
			"request":         {audit.Query{RequestID: "request8"}, []string{"8"}},
			"record":          {audit.Query{Target: "target8", ActorID: "actor0"}, []string{"8"}},
			"another's":       {audit.Query{Target: "target8", ActorID: "actor1"}, nil},
			"address":         {audit.Query{IP: "203.0.113.9"}, []string{"27", "23", "19", "15", "11", "7", "3"}},
			"address, action": {audit.Query{IP: "203.0.113.9", Action: "ACTION_3"}, []string{"23", "3"}},
			"range": {audit.Query{From: start.Add(2 * time.Millisecond), To: start.Add(3 * time.Millisecond)},
				[]string{"11", "10", "9", "8", "7", "6"}},
			"all at once": {audit.Query{UserID: "user1", ActorID: "actor0", From: start.Add(time.Millisecond),
				To: start.Add(6 * time.Millisecond)}, []string{"16", "10", "4"}},
			"nobody":    {audit.Query{UserID: "user"}, nil},
			"a pattern": {audit.Query{Action: "ACTION%"}, nil},
		} {
			var want []audit.Stored
			for _, r := range all {
				if slices.Contains(c.want, number(r)) {
					want = append(want, r)
				}
			}
			if len(want) != len(c.want) {
				t.Fatalf("%s: the store lacks rows of %v", name, c.want)
			}
			t.Run(name, func(t *testing.T) { pagetest.Check(t, s.List, c.q, want) })
		}
	})
}

// The state of the trail tells the last checkpoint and notices what it can: a cut end,
// and a checkpoint that was changed or is missing.
func TestAuditState(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTrail(t, db)
		wants := func(what string, last audit.Anchor, problem string) {
			t.Helper()
			s := storetest.Value(kit.NewAudit(db).State(t.Context(), auditKey))(t)
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
		one := storetest.Value(kit.NewAudit(db).State(t.Context(), auditKey))(t)
		two := l.mark(one.Last)
		wants("two", two, "")

		persistencetest.Exec(t, db, "CREATE TABLE kept AS SELECT * FROM audit WHERE seq > 22")
		persistencetest.Exec(t, db, "DELETE FROM audit WHERE seq > 22")
		wants("a cut end", two, "ends at 22")
		persistencetest.Exec(t, db, "INSERT INTO audit SELECT * FROM kept")
		wants("healed", two, "")

		persistencetest.Exec(t, db, "UPDATE audit_checkpoint SET counter = 7 WHERE counter = 1")
		seven := storetest.Value(kit.NewAudit(db).State(t.Context(), auditKey))(t)
		if seven.Last.Counter != 7 || seven.Broken == "" {
			t.Errorf("a checkpoint of another place: %+v", seven)
		}
		persistencetest.Exec(t, db, "DELETE FROM audit_checkpoint WHERE counter = 7")
		wants("one is missing", two, "checkpoint 1 is missing")
	})
}
