package session

import (
	"context"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// The audit names of the ways to end a session.
const (
	ActionLogout = "LOGOUT"
	ActionEnd    = "SESSION_END"
	ActionEndAll = "SESSION_END_ALL"
)

// maxListed bounds the list of a user's active sessions.
const maxListed = 1000

// Caller is a user with a session.
type Caller struct {
	audit.By
	SessionID string
}

// List returns the caller's active sessions, newest first.
func (s *Service) List(ctx context.Context, who Caller) ([]Session, error) {
	return s.Sessions.List(ctx, who.UserID, s.Now(), maxListed)
}

// Logout ends the caller's own session. A second call has no effect.
func (s *Service) Logout(ctx context.Context, who Caller) error {
	return s.end(ctx, who, who.SessionID, ActionLogout)
}

// End ends one of the caller's sessions; RECORD_NOT_FOUND for any other id, whether it exists or not.
func (s *Service) End(ctx context.Context, who Caller, sessionID string) error {
	if _, err := s.Sessions.Get(ctx, who.UserID, sessionID, s.Now()); err != nil {
		return err
	}
	return s.end(ctx, who, sessionID, ActionEnd)
}

func (s *Service) end(ctx context.Context, who Caller, sessionID, action string) error {
	now := s.Now()
	err := s.Commit.Commit(ctx, End{SessionID: sessionID, UserID: who.UserID, At: now}, Ended(sessionID, who.UserID),
		s.record(who, now, action, sessionID))
	if err == nil {
		s.Revocations.End(sessionID)
	}
	return err
}

// EndAll ends every session of the caller, including this one, and closes the challenges started in them. It returns
// how many were active.
func (s *Service) EndAll(ctx context.Context, who Caller) (ended int, err error) {
	return s.endAll(ctx, who.UserID, func(_ user.User, now time.Time) []commit.Write {
		return []commit.Write{s.record(who, now, ActionEndAll, who.UserID)}
	})
}

// endAll ends every session of an account, with further writes in the same commit. It returns how many were active.
func (s *Service) endAll(ctx context.Context, userID string,
	with func(u user.User, now time.Time) []commit.Write) (ended int, err error) {
	err = commit.Retry(5, func() error {
		now := s.Now()
		u, err := s.Users.Get(ctx, userID)
		if err != nil {
			return err
		}
		n, err := s.Sessions.Count(ctx, userID, now)
		if err != nil {
			return err
		}
		if err = s.Commit.Commit(ctx, append(EndAll(u, now), with(u, now)...)...); err == nil {
			s.Revocations.Raise(u.ID, u.SV+1)
			ended = n
		}
		return err
	})
	return ended, err
}

func (s *Service) record(who Caller, at time.Time, action, target string) audit.Record {
	return who.Did(audit.Record{At: at, UserID: who.UserID, Action: action, Target: target})
}

// ActionAlarm is the audit name of an alarm.
const ActionAlarm = "DEVICE_ALARM"

// Alarms handles the reports of owners that they did not start a challenge (D-EXT-09). All fields are required.
type Alarms struct {
	// Sessions ends the sessions of the owner. Its Users, Sessions, Commit, Notices, Revocations and Now are required.
	Sessions   *Service
	Challenges interface {
		Load(ctx context.Context, id string) (challenge.Challenge, error)
	}
	// Hold returns the write that holds the queued withdrawals of an account (transaction.HoldQueued).
	Hold func(by audit.By, userID string) (commit.Write, error)
}

// Raise ends every session of an account, closes its open challenges and holds its queued withdrawals, because its
// owner did not start one of the challenges, and notifies the owner. It returns how many sessions were active. who is
// the owner, whose device deviceID signed the report. A repetition is a further alarm.
//
// Errors: CHALLENGE_NOT_FOUND for a challenge of another account; UNAVAILABLE.
func (s *Alarms) Raise(ctx context.Context, who audit.By, deviceID, challengeID string) (ended int, err error) {
	c, err := s.Challenges.Load(ctx, challengeID)
	if err == nil && c.UserID != who.UserID {
		err = fault.New(fault.ChallengeNotFound, "there is no such challenge")
	}
	if err != nil {
		return 0, err
	}
	hold, err := s.Hold(who, who.UserID)
	if err != nil {
		return 0, err
	}
	return s.Sessions.endAll(ctx, who.UserID, func(u user.User, now time.Time) []commit.Write {
		return append(s.Sessions.Notices.Notice(u.Account(), message.AlarmRaised, nil, who.IP), hold,
			user.Alarm{UserID: u.ID, At: now.Truncate(time.Millisecond)},
			who.Did(audit.Record{At: now, UserID: u.ID, Action: ActionAlarm, Target: c.ID,
				Detail: c.Action + " was not started by the owner, says device " + deviceID}))
	})
}
