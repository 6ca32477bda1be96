package session

import (
	"context"
	"errors"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/user"
	"castellan/domain/delivery/message"
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
	Now         func() time.Time
}

// Raise ends every session of an account and closes its open challenges, because its owner did not start one of them,
// and notifies the owner. It returns how many sessions were active. who is the owner, whose device deviceID signed the
// report. A repetition is a further alarm.
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
	for range 5 {
		now := s.Now()
		u, err := s.Users.Get(ctx, who.UserID)
		if err != nil {
			return 0, err
		}
		n, err := s.Sessions.Count(ctx, who.UserID, now)
		if err != nil {
			return 0, err
		}
		writes := append(EndAll(u, now), who.Did(audit.Record{At: now, UserID: u.ID, Action: ActionAlarm, Target: c.ID,
			Detail: c.Action + " was not started by the owner, says device " + deviceID}))
		writes = append(writes, s.Notices.Notice(u.Account(), message.AlarmRaised, nil, who.IP)...)
		err = s.Commit.Commit(ctx, writes...)
		if errors.Is(err, commit.ErrFenced) {
			continue
		}
		if err != nil {
			return 0, err
		}
		s.Revocations.Raise(u.ID, u.SV+1)
		return n, nil
	}
	return 0, fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}
