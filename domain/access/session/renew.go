package session

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
)

// Renew makes a new token for a living session of u, whom the transaction of ctx holds, and moves the session's expiry
// on: the same session, the claims of now. The old token stays good until its own end (D-AUTH-15). However often it is
// renewed, a session ends SessionTTL after its login. TOKEN_REVOKED where it has ended.
//
// A session that is ended later than this transaction commits is on the lists of revocations for as long as the new
// token lives; one that was ended before is refused here. There is no order of the two in which the token survives.
func (s *Service) Renew(ctx context.Context, u user.User, sessionID string) (string, error) {
	now := s.Now()
	old, err := s.Sessions.Get(ctx, u.ID, sessionID, now)
	until := latest(old.ExpiresAt, earliest(now.Add(s.TokenTTL), old.CreatedAt.Add(s.SessionTTL)))
	if err == nil {
		err = s.Sessions.Extend(ctx, u.ID, sessionID, until)
	}
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = fault.New(fault.TokenRevoked, "the session has ended")
	}
	if err != nil {
		return "", err
	}
	signed, err := s.Tokens.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: u.ID, SessionID: old.ID,
		SV: old.SV, Roles: u.AllRoles(), AMR: old.AMR, AuthTime: old.CreatedAt, IssuedAt: now, ExpiresAt: until})
	if err != nil {
		return "", fmt.Errorf("renew a session: %w", err)
	}
	return signed, nil
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
