package sessiontest

import (
	"testing"
	"time"

	"castellan/domain/access/session"
	"castellan/domain/access/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Only an active session of the user is extended.
func extend(t *testing.T, s session.Store, c commit.Committer) {
	for n, owner := range []string{one, one, two} {
		storetest.Must(t, c.Commit(t.Context(), added(sample(n, owner))))
	}
	storetest.Must(t, c.Commit(t.Context(), session.End{SessionID: "s1", UserID: one, At: now}))
	until := now.Add(time.Hour)
	storetest.Must(t, s.Extend(t.Context(), one, "s0", until))
	for _, other := range []string{"s1", "s2", "s9"} {
		storetest.Wants(t, s.Extend(t.Context(), one, other, until), fault.RecordNotFound)
	}
	if got := ids(t, s, one, until.Add(-time.Second)); len(got) != 1 || got[0] != "s0" {
		t.Errorf("%v live", got)
	}
	if got := ids(t, s, two, until.Add(-time.Second)); len(got) != 0 {
		t.Errorf("%v live", got)
	}
	storetest.Must(t, c.Commit(t.Context(), user.EndSessions{UserID: one, SV: 1, At: now}))
	storetest.Wants(t, s.Extend(t.Context(), one, "s0", until), fault.RecordNotFound)
}
