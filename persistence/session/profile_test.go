package session_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/profile"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

func TestProfileStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) profile.Store { return session.NewProfiles(db) },
		storetest.Cases[profile.Store]{"MailChanges": mailChanges}, "email_change")
}

// Changes at one instant keep their order.
func mailChanges(t *testing.T, s profile.Store, c commit.Committer) {
	start := time.UnixMilli(1_700_000_000_000).UTC()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * time.Hour) }
	var all [5]profile.MailChange
	for i, of := range []string{"u1", "u1", "u2", "u1", "u1"} {
		all[i] = profile.MailChange{UserID: of, Old: fmt.Sprint("old", i), New: fmt.Sprint("new", i), ChangedBy: "boss",
			At: at(max(i, 1))}
		storetest.Must(t, c.Commit(t.Context(), profile.AddMailChange{MailChange: all[i]}))
		last, err := s.MailChanges(t.Context(), profile.Query{UserID: of}, page.Query[profile.Place]{Limit: 1})
		storetest.Must(t, err)
		all[i].ID = last.Records[0].ID
	}
	for _, f := range []struct {
		query profile.Query
		want  []int
	}{
		{profile.Query{UserID: "u1"}, []int{4, 3, 1, 0}},
		{profile.Query{UserID: "u2"}, []int{2}},
		{profile.Query{UserID: "u3"}, nil},
		{profile.Query{UserID: "u1", From: at(3)}, []int{4, 3}},
		{profile.Query{UserID: "u1", To: at(3)}, []int{3, 1, 0}},
		{profile.Query{UserID: "u1", From: at(1), To: at(1)}, []int{1, 0}},
		{profile.Query{UserID: "u1", From: at(1).Add(time.Millisecond), To: at(3).Add(-time.Millisecond)}, nil},
	} {
		var want []profile.MailChange
		for _, i := range f.want {
			want = append(want, all[i])
		}
		pagetest.Check(t, s.MailChanges, f.query, want)
	}
}
