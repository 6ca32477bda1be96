package kit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

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
		everything, err := s.List(ctx, audit.Query{}, page.Query[audit.Place]{})
		storetest.Must(t, err)
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
