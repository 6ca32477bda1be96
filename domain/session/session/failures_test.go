package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// alarms is the service of alarms over the rows of a bench.
func (b *bench) alarms() *session.Alarms {
	return &session.Alarms{Users: b.users, Sessions: sessionstore.NewSessions(b.db),
		Challenges: factor.NewChallenges(b.db), Notices: notices{b}, Commit: committer{b},
		Revocations: b.svc.Revocations, Hold: persistencetest.HoldQueued(b.svc.Now), Now: b.svc.Now}
}

// An alarm of a device ends all sessions of its owner, and its audit row names the challenge and the device.
func TestAlarm(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.login(1)
	who := b.login(1).By
	c := challenge.Challenge{ID: "c1", UserID: u.ID, Action: "WITHDRAW", Flow: challenge.FlowSession,
		Body: challenge.Body{Subject: u.ID}}
	storetest.Must(t, b.db.Commit(t.Context(), challenge.Insert{Challenge: c}))
	b.take()
	if ended, err := b.alarms().Raise(t.Context(), who, "d1", "c1"); ended != 2 || err != nil {
		t.Errorf("%d sessions ended, %v", ended, err)
	}
	if told := b.take(); !strings.Contains(told, "tell "+u.Email+" ") {
		t.Errorf("the owner is not told: %s", told)
	}
	left, err := b.svc.List(t.Context(), session.Caller{By: who})
	if err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	row := persistencetest.Did(t, b.db, "DEVICE_ALARM")[0]
	if row.Target != "c1" || row.ActorID != u.ID || row.UserID != u.ID ||
		row.Detail != "WITHDRAW was not started by the owner, says device d1" {
		t.Errorf("%+v", row)
	}
	foreign := challenge.Insert{Challenge: challenge.Challenge{ID: "c2", UserID: "another", Action: "LOGIN"}}
	storetest.Must(t, b.db.Commit(t.Context(), foreign))
	for _, id := range []string{"unknown", "c2"} {
		n, err := b.alarms().Raise(t.Context(), who, "d1", id)
		if storetest.Wants(t, err, fault.ChallengeNotFound); n != 0 {
			t.Errorf("%d sessions ended", n)
		}
	}
}

// fencing is a committer whose first units meet a changed row.
type fencing struct {
	commit.Committer
	times int
	tries int
}

func (f *fencing) Commit(ctx context.Context, ws ...commit.Write) error {
	if f.tries++; f.tries <= f.times {
		return commit.ErrFenced
	}
	return f.Committer.Commit(ctx, ws...)
}

// The end of all sessions is decided again while the account changes, at most five times.
func TestEndAllOfChangingAccount(t *testing.T) {
	for times, want := range map[int]fault.Code{4: "", 5: fault.Unavailable} {
		b := newBench(t)
		b.add(1, nil)
		who := b.login(1)
		f := &fencing{Committer: b.db, times: times}
		b.svc.Commit = f
		ended, err := b.svc.EndAll(t.Context(), who)
		if storetest.Wants(t, err, want); f.tries != 5 || (ended == 1) != (want == "") {
			t.Errorf("%d ended after %d tries", ended, f.tries)
		}
		if e := (*fault.Error)(nil); errors.As(err, &e) && e.RetryAfter != time.Second {
			t.Errorf("retry after %v", e.RetryAfter)
		}
	}
}
