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

// ActionAlarm is the audit name of an alarm.
const ActionAlarm = "DEVICE_ALARM"

// Alarms handles the reports of owners that they did not start a challenge (D-EXT-09). All fields are required.
type Alarms struct {
	Users      user.Store
	Sessions   Store
	Challenges interface {
		Load(ctx context.Context, id string) (challenge.Challenge, error)
	}
	Notices     challenge.Notices
	Commit      commit.Committer
	Revocations *Revocations
	// Hold returns the write that holds the queued withdrawals of an account (transaction.HoldQueued).
	Hold func(by audit.By, userID string) (commit.Write, error)
	Now  func() time.Time
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
	e := ender{s.Users, s.Sessions, s.Commit, s.Revocations, s.Now}
	return e.all(ctx, who.UserID, func(u user.User, now time.Time) []commit.Write {
		return append(s.Notices.Notice(u.Account(), message.AlarmRaised, nil, who.IP), hold,
			user.Alarm{UserID: u.ID, At: now.Truncate(time.Millisecond)},
			who.Did(audit.Record{At: now, UserID: u.ID, Action: ActionAlarm, Target: c.ID,
				Detail: c.Action + " was not started by the owner, says device " + deviceID}))
	})
}
