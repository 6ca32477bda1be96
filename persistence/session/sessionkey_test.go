package session_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/session/session"
)

// addBound adds a session with a key.
func addBound(t *testing.T, c commit.Committer, s session.Session) {
	t.Helper()
	storetest.Must(t, c.Commit(t.Context(), added(s), session.Bind{SessionID: s.ID, Thumbprint: "key of " + s.ID}))
}

func renewal(sessionID, userID string, at time.Time) session.Renewed {
	return session.Renewed{SessionID: sessionID, UserID: userID, Thumbprint: "key of " + sessionID, At: at,
		Until: at.Add(time.Hour)}
}

// Only an active session of the user with this key is renewed; that records its use and its expiry.
func sessionRenewed(t *testing.T, s session.Store, c commit.Committer) {
	for n, owner := range []string{one, one, two} {
		addBound(t, c, sampleSession(n, owner))
	}
	storetest.Must(t, c.Commit(t.Context(), added(sampleSession(3, one))))
	storetest.Must(t, c.Commit(t.Context(), session.End{SessionID: "s1", UserID: one, At: now}))
	at := now.Add(20 * time.Minute)
	storetest.Must(t, c.Commit(t.Context(), renewal("s0", one, at)))
	got, err := s.Bound(t.Context(), one, "s0", at.Add(59*time.Minute))
	if err != nil || got.Thumbprint != "key of s0" || !got.LastSeenAt.Equal(at) ||
		!got.ExpiresAt.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v, %v", got, err)
	}
	storetest.Equal(t, storetest.Value(s.Bound(t.Context(), one, "s3", now))(t).Thumbprint, "")
	other, idle, late := renewal("s0", one, at), renewal("s0", one, at), renewal("s0", one, at.Add(time.Hour))
	other.Thumbprint, idle.UsedAfter = "key of s2", at
	for name, w := range map[string]session.Renewed{
		"ended": renewal("s1", one, at), "of another": renewal("s2", one, at),
		"without a key": renewal("s3", one, at), "unknown": renewal("s9", one, at),
		"another key": other, "idle": idle, "expired": late,
	} {
		storetest.Is(t, c.Commit(t.Context(), w), commit.ErrFenced, name)
	}
	idle.UsedAfter = at.Add(-time.Millisecond)
	storetest.Must(t, c.Commit(t.Context(), idle))
	addBound(t, c, sampleSession(4, one))
	storetest.Must(t, c.Commit(t.Context(), session.Unbind{SessionID: "s4"}))
	storetest.Is(t, c.Commit(t.Context(), renewal("s4", one, at)), commit.ErrFenced, "after its key was removed")
	storetest.Equal(t, storetest.Value(s.Bound(t.Context(), one, "s4", now))(t).Thumbprint, "")
	storetest.Wants(t, storetest.Err(s.Bound(t.Context(), two, "s0", now)), fault.RecordNotFound)
	storetest.Must(t, c.Commit(t.Context(), user.EndSessions{UserID: one, SV: 1, At: now}))
	storetest.Is(t, c.Commit(t.Context(), renewal("s0", one, at)), commit.ErrFenced, "after the end of all")
	storetest.Wants(t, storetest.Err(s.Bound(t.Context(), one, "s0", at)), fault.RecordNotFound)
}

// Of renewals that race with one proof, one commits, with an end it is before or after.
func sessionRenewedUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	addBound(t, c, sampleSession(0, one))
	at := now.Add(time.Minute)
	proof := device.See{ID: "p1", At: at, Until: at.Add(10 * time.Minute)}
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, at); gone || err != nil {
		t.Fatalf("%v, %v", gone, err)
	}
	used := fault.New(fault.DPoPInvalid, "used")
	storetest.OneWins(t, 12, fault.DPoPInvalid, func(int) error {
		err := c.Commit(t.Context(), proof, renewal("s0", one, at))
		if errors.Is(err, commit.ErrFenced) {
			return used
		}
		return err
	})
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, at); !gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := s.Proved(t.Context(), []commit.Write{proof}, proof.Until); gone || err != nil {
		t.Errorf("a proof is remembered for ever: %v, %v", gone, err)
	}
}
