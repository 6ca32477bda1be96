package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
	"castellan/domain/proof/dpop"
)

// Presented is the token of a request, whose signature was checked.
type Presented struct {
	SessionID  string
	Thumbprint string // of the key that the token names; "" for none
	ExpiresAt  time.Time
}

// Refresh creates a token with current claims for an active session of u, which the transaction of ctx holds. The token
// ends with the one of the request and names the same key, also if the session has lost it meanwhile (D-AUTH-15). So
// only RenewBound extends a session. TOKEN_REVOKED if the session has ended.
//
// A session that ends later is listed in the revocations until each of its tokens has expired.
func (s *Service) Refresh(ctx context.Context, u user.User, sent Presented) (string, error) {
	now := s.Now()
	of, err := s.Sessions.Bound(ctx, u.ID, sent.SessionID, now)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = ended()
	}
	if err != nil {
		return "", err
	}
	of.Thumbprint = cmp.Or(sent.Thumbprint, of.Thumbprint)
	return s.sign(of, u.AllRoles(), now, sent.ExpiresAt)
}

// Lifetimes bound a session with a key.
type Lifetimes struct {
	Token   time.Duration
	Session time.Duration // from the login
	Idle    time.Duration // from the last use
}

// Until returns the expiry of a token that a session gets now. It also returns the last instant at which a session with
// a key can be renewed.
func (l Lifetimes) Until(login, now time.Time) (token, session time.Time) {
	end := login.Add(l.Session)
	return earliest(now.Add(l.Token), end), earliest(now.Add(l.Token+l.Idle), end)
}

// Over reports whether a session can be renewed no more.
func (l Lifetimes) Over(login, used, now time.Time) bool {
	return !now.Before(login.Add(l.Session)) || !now.Before(used.Add(l.Idle))
}

func (s *Service) life() Lifetimes { return Lifetimes{s.TokenTTL, s.SessionTTL, s.Idle} }

func (s *Service) until(of Session, now time.Time) (token, session time.Time) {
	return s.life().Until(of.CreatedAt, now)
}

// sign returns a token of a session.
func (s *Service) sign(of Session, roles []string, now, until time.Time) (string, error) {
	signed, err := s.Tokens.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: of.UserID, SessionID: of.ID,
		SV: of.SV, Roles: roles, AMR: of.AMR, AuthTime: of.CreatedAt, IssuedAt: now, ExpiresAt: until,
		Thumbprint: of.Thumbprint})
	if err != nil {
		return "", fmt.Errorf("token of a session: %w", err)
	}
	return signed, nil
}

// RenewRequest asks for a new token of a session that is bound to a key (D-AUTH-16). The caller has checked the
// signature of the token, which may have expired.
type RenewRequest struct {
	Claims  token.Claims
	Proof   dpop.Request // names the token
	Starter challenge.Starter
}

// Renewal is a new token. EndsAt is the instant after which only a new login helps.
type Renewal struct {
	Token     string
	ExpiresAt time.Time
	EndsAt    time.Time
}

// RenewBound creates a new token for a session that is bound to a key, and extends the session. It needs a proof by the
// key, and no second factor. The account must be one that may log in. The proof is used up and the session extended in
// one unit, so of several renewals with one proof, on any nodes, one succeeds. The old token stays valid until its own
// end, so a client that loses the answer renews with it again.
//
// A session that ends after this commit is listed in the revocations for the lifetime of the new token. One that ended
// before is refused here. In either order the token does not outlive the session's end.
//
// Errors: DPOP_INVALID, with a nonce if the age is the proof's only fault; TOKEN_EXPIRED after SessionTTL and after
// Idle without a use; TOKEN_REVOKED if the session has ended; UNAVAILABLE.
func (s *Service) RenewBound(ctx context.Context, r RenewRequest) (Renewal, error) {
	var none Renewal
	c, now := r.Claims, s.Now()
	proof, used, err := s.keyOf(r.Proof)
	if err != nil {
		return none, err
	}
	if c.Thumbprint == "" || proof.Thumbprint != c.Thumbprint {
		return none, dpop.Refused()
	}
	if s.life().Over(c.AuthTime, now, now) {
		return none, fault.New(fault.TokenExpired, "the session is too old; log in again")
	}
	u, err := s.Users.Get(ctx, c.Subject)
	if fault.CodeOf(err) == fault.RecordNotFound || err == nil && s.whyNot(u, r.Starter) != "" {
		return none, ended()
	}
	if err != nil {
		return none, err
	}
	// The token says all of the session that does not change; the fence reads the rest.
	of := Session{ID: c.SessionID, UserID: u.ID, CreatedAt: c.AuthTime, SV: c.SV, AMR: c.AMR, Thumbprint: c.Thumbprint}
	until, end := s.until(of, now)
	signed, err := s.sign(of, u.AllRoles(), now, until)
	if err != nil {
		return none, err
	}
	w := Renewed{SessionID: of.ID, UserID: u.ID, Thumbprint: c.Thumbprint, At: now, Until: end}
	if s.life().Over(c.AuthTime, c.IssuedAt, now) { // a request may have been later: the row knows
		w.UsedAfter = now.Add(-s.Idle)
	}
	err = s.Commit.Commit(ctx, append(used, w)...)
	if errors.Is(err, commit.ErrFenced) {
		return none, s.whyFenced(ctx, proof, used, w)
	}
	if err != nil {
		return none, err
	}
	return Renewal{Token: signed, ExpiresAt: until.Truncate(time.Second), EndsAt: of.CreatedAt.Add(s.SessionTTL)}, nil
}

// whyFenced returns why a renewal was fenced: its proof was used before, or the session is idle or has ended.
func (s *Service) whyFenced(ctx context.Context, p dpop.Proof, used []commit.Write, w Renewed) error {
	if err := s.spent(ctx, p, used); err != nil {
		return err
	}
	// The row of a session is kept for longer than it can be renewed.
	of, err := s.Sessions.Bound(ctx, w.UserID, w.SessionID, time.Time{})
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return ended()
	case err != nil:
		return err
	case !w.At.Before(of.ExpiresAt), !w.UsedAfter.IsZero() && !of.LastSeenAt.After(w.UsedAfter):
		return fault.New(fault.TokenExpired, "the session was not used for too long; log in again")
	}
	return ended()
}

func ended() error { return fault.New(fault.TokenRevoked, "the session has ended") }

// keyOf verifies a proof, and returns the writes that use it up. A request without a proof has no key.
func (s *Service) keyOf(r dpop.Request) (p dpop.Proof, used []commit.Write, err error) {
	if r.Proof == "" {
		return p, nil, nil
	}
	if p, err = s.Proofs.Check(r); err != nil {
		return p, nil, err
	}
	used, err = s.Proofs.Use(p)
	return p, used, err
}

// spent returns the refusal of a proof that was used before. It is called after a unit with its use was fenced.
func (s *Service) spent(ctx context.Context, p dpop.Proof, used []commit.Write) error {
	if used == nil {
		return nil
	}
	gone, err := s.Sessions.Proved(ctx, used, s.Now())
	if err == nil && gone {
		err = s.Proofs.Used(p)
	}
	return err
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
