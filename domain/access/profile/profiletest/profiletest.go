// Package profiletest is the contract of profile.Store as a test. The persistence package runs it on both databases.
package profiletest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/access/profile"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation of profile.Store and of the write of the package.
func Run(t *testing.T, open storetest.Open[profile.Store]) {
	storetest.Run(t, open, storetest.Cases[profile.Store]{"MailChanges": mailChanges})
}

// Changes at one instant keep their order.
func mailChanges(t *testing.T, s profile.Store, c commit.Committer) {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Hour) }
	for i, of := range []string{"u1", "u1", "u2", "u1", "u1"} {
		storetest.Must(t, c.Commit(t.Context(), profile.AddMailChange{MailChange: profile.MailChange{UserID: of,
			Old: fmt.Sprint("old", i), New: fmt.Sprint("new", i), ChangedBy: "boss", At: at(max(i, 1))}}))
	}
	for _, f := range []struct {
		query profile.Query
		want  string
	}{
		{profile.Query{UserID: "u1"}, "4 3 1 0"},
		{profile.Query{UserID: "u2"}, "2"},
		{profile.Query{UserID: "u3"}, ""},
		{profile.Query{UserID: "u1", From: at(3)}, "4 3"},
		{profile.Query{UserID: "u1", To: at(3)}, "3 1 0"},
		{profile.Query{UserID: "u1", From: at(1), To: at(1)}, "1 0"},
		{profile.Query{UserID: "u1", From: at(1).Add(time.Millisecond), To: at(3).Add(-time.Millisecond)}, ""},
	} {
		var got []string
		for q := (page.Query[profile.Place]{Limit: 1, Count: true}); ; {
			p, err := s.MailChanges(t.Context(), f.query, q)
			storetest.Must(t, err)
			for _, r := range p.Records {
				i := strings.TrimPrefix(r.Old, "old")
				if got = append(got, i); r.New != "new"+i || r.UserID != f.query.UserID || r.ChangedBy != "boss" || r.ID == 0 {
					t.Errorf("%+v", r)
				}
			}
			if q.After = new(profile.Place); !p.More {
				if want := len(strings.Fields(f.want)); p.Total != want {
					t.Errorf("%+v: counted %d", f.query, p.Total)
				}
				break
			}
			*q.After = p.Records[0].Mark()
		}
		if strings.Join(got, " ") != f.want {
			t.Errorf("%+v: %v, want %s", f.query, got, f.want)
		}
	}
}
