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

// Renew creates a new token for an active session of u, which the transaction of ctx holds, and extends the session's
// expiry. The session stays the same; the claims are current. The old token stays valid until its own end
// (D-AUTH-15). A session ends SessionTTL after its login, however often it is renewed. TOKEN_REVOKED if it has ended.
//
// A session that ends after this transaction commits is listed in the revocations for the lifetime of the new token.
// One that ended before is refused here. In either order the token does not outlive the session's end.
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
