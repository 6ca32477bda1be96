// Package audittest is the contract of audit.Store as a test: persistence runs
// it on both databases.
package audittest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
)

// Run checks an empty store and the rows committed to it.
func Run(t *testing.T, open storetest.Open[audit.Store]) {
	s, c := open(t)
	ctx := t.Context()
	start := time.UnixMilli(1_700_000_000_000).UTC()
	for i := range 30 {
		r := audit.Record{At: start.Add(time.Duration(i/3) * time.Millisecond), ActorID: fmt.Sprint("actor", i%2),
			UserID: fmt.Sprint("user", i%3), Action: fmt.Sprint("ACTION_", i%5),
			Target: fmt.Sprint("target", i), Outcome: audit.Success, IP: fmt.Sprint("203.0.113.", i%4*3),
			RequestID: fmt.Sprint("request", i), Detail: "O'Neil ? %"}
		if i%7 == 0 {
			r.Outcome, r.UserID = audit.Refused, ""
		}
		if err := c.Commit(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	everything, err := s.List(ctx, audit.Query{}, page.Query[audit.Place]{})
	if err != nil {
		t.Fatal(err)
	}
	all := everything.Records
	number := func(r audit.Stored) string { return r.Target[len("target"):] }
	var targets []string
	for _, r := range all {
		targets = append(targets, number(r))
	}
	var want []string
	for i := 29; i >= 0; i-- {
		want = append(want, fmt.Sprint(i))
	}
	if !slices.Equal(targets, want) {
		t.Fatalf("listed %v, want the newest first", targets)
	}
	last := all[0]
	if last.At != start.Add(9*time.Millisecond) || last.ActorID != "actor1" || last.UserID != "user2" ||
		last.Action != "ACTION_4" || last.Outcome != audit.Success ||
		last.IP != "203.0.113.3" || last.RequestID != "request29" || last.Detail != "O'Neil ? %" || last.Chain == "" ||
		last.Seq != 30 || len(last.Hash) != 32 {
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
}
