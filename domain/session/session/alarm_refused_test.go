package session_test

import (
	"context"
	"errors"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
)

// oneChallenge is the store of a challenge of u1.
type oneChallenge struct {
	challenge.Store
	err error
}

func (s oneChallenge) Load(_ context.Context, id string) (challenge.Challenge, error) {
	return challenge.Challenge{ID: id, UserID: "u1"}, s.err
}

// An alarm about a challenge of another account, or one that cannot be read, ends nothing.
func TestRefusedAlarm(t *testing.T) {
	a := &session.Alarms{Challenges: oneChallenge{}} // it has no account to end sessions of
	n, err := a.Raise(t.Context(), audit.By{UserID: "u2"}, "d1", "c1")
	if storetest.Wants(t, err, fault.ChallengeNotFound); n != 0 {
		t.Errorf("%d sessions ended", n)
	}
	down := errors.New("the database is down")
	a.Challenges = oneChallenge{err: down}
	if n, err := a.Raise(t.Context(), audit.By{UserID: "u1"}, "d1", "c1"); !errors.Is(err, down) || n != 0 {
		t.Errorf("%d sessions ended, %v", n, err)
	}
}
