package kyc

import (
	"context"
	"strconv"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/level"
)

// raise returns the writes that raise an account to the level of the parameter KYC_LEVEL, if its identity and its
// address are both approved. u is the account after the decision, and is locked. A level is never lowered, and an
// account of a special level keeps it. If the parameter has no level, a missing one, or a special one, nothing is
// written.
func (s *Service) raise(ctx context.Context, by audit.By, u user.User) ([]commit.Write, error) {
	to := parameter.KYCLevel.In(s.Values()).LevelID
	if to == nil || !u.KYCApproved() || u.AddressConfirmed != user.ManuelApproved || int64(u.Level) >= *to {
		return nil, nil
	}
	all, err := s.Levels.List(ctx, level.Query{})
	if err != nil {
		return nil, err
	}
	found := false
	for _, l := range all {
		if l.Special && (l.ID == int64(u.Level) || l.ID == *to) {
			return nil, nil
		}
		found = found || l.ID == *to
	}
	if !found {
		return nil, nil
	}
	return []commit.Write{user.SetLevel{UserID: u.ID, Level: int(*to)},
		by.Did(audit.Record{At: s.Changes.Now(), UserID: u.ID, Action: level.ActionGive, Target: u.ID,
			Detail: strconv.Itoa(u.Level) + " -> " + strconv.FormatInt(*to, 10)})}, nil
}
