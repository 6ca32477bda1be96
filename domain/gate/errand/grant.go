package errand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// GrantType is the JOSE type of a grant.
const GrantType = "guard-grant+jwt"

const (
	grantLife = time.Minute
	// grantStep is how long each read returns the same text. So a grant is valid for at least 30 s after a read.
	grantStep = 30 * time.Second
	// grantFor is how long after the approval grants are issued. A service that has not acted by then starts again.
	grantFor = 10 * time.Minute
)

// claims are the claims of a grant, in order. act is the action code, int the digest of the signed intent, and amr
// lists the completed methods. auth_time is when the user approved; older releases have none.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  string   `json:"aud"` // name of the service client
	IssuedAt  int64    `json:"iat"`
	ExpiresAt int64    `json:"exp"`
	ID        string   `json:"jti"` // of the challenge
	Subject   string   `json:"sub"` // user id
	Action    string   `json:"act"`
	Reference string   `json:"ref"`
	Intent    string   `json:"int"`
	Methods   []string `json:"amr"`
	AuthTime  int64    `json:"auth_time,omitempty"`
}

// Grant returns the grant of an errand: "" unless it was completed within the last ten minutes, was not redeemed, and
// its account may be used. Every node returns the same text for 30 s, without a write. All grants of an errand have one
// jti, and one of them can be redeemed.
func (s *Service) Grant(ctx context.Context, e Errand) (string, error) {
	if e.Status != Completed || !e.RedeemedAt.IsZero() || s.Now().Sub(e.SettledAt) >= grantFor {
		return "", nil
	}
	switch _, err := s.Account(ctx, e.UserID); {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return "", nil
	case err != nil:
		return "", err
	}
	at := e.SettledAt.Truncate(time.Second)
	if since := s.Now().Sub(at); since > 0 {
		at = at.Add(since.Truncate(grantStep))
	}
	c := claims{s.Issuer, e.Service, at.Unix(), at.Add(grantLife).Unix(), e.ID, e.UserID, e.Action, e.Reference, e.Intent,
		e.Methods, e.SettledAt.Unix()}
	if s.Mixed != nil && s.Mixed() { // an older release reads no grant with a claim that it does not know
		c.AuthTime = 0
	}
	return s.Statements.SignStatement(GrantType, c)
}

// Redeemed is the result of a redemption.
type Redeemed struct {
	Errand
	Content json.RawMessage // the payload; nil for none
}

// payloadData is the associated data of a sealed payload.
func payloadData(id string) []byte { return []byte("errand/" + id) }

// Redeem redeems a grant of a service. At most one call succeeds for an errand, whatever the number of callers, nodes
// and crashes. Its payload is deleted with that success.
//
// Errors: UNAUTHENTICATED for anything but a grant of this service; RECORD_NOT_FOUND for the grant of another service
// client; GRANT_USED with the time of the first redemption; TOKEN_EXPIRED; TOKEN_REVOKED if the account may not be used
// any more.
func (s *Service) Redeem(ctx context.Context, by audit.By, service, grant string) (r Redeemed, err error) {
	var c claims
	if err := s.Statements.ReadStatement(GrantType, grant, &c); err != nil {
		return r, err
	}
	e, err := s.owned(ctx, service, c.ID)
	if err != nil {
		return r, err
	}
	if err := used(e); err != nil {
		return r, err
	}
	now := s.Now()
	if e.Status != Completed || c.Issuer != s.Issuer || c.Audience != service {
		return r, fault.New(fault.Unauthenticated, "the %s is not valid", GrantType)
	}
	if now.Unix() >= c.ExpiresAt {
		return r, fault.New(fault.TokenExpired, "the grant has expired; get the challenge again")
	}
	switch _, err := s.Account(ctx, e.UserID); {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return r, fault.New(fault.TokenRevoked, "the account of the grant is not active")
	case err != nil:
		return r, err
	}
	r.Errand = e
	if e.Payload != nil {
		if r.Content, err = s.Seals.Open(e.Payload, payloadData(e.ID)); err != nil {
			return Redeemed{}, fmt.Errorf("open the payload of challenge %s: %w", e.ID, err)
		}
	}
	r.RedeemedAt, r.Redemption = now, id.New(now)
	err = s.Commit.Commit(ctx, Redeem{ID: e.ID, At: now, Redemption: r.Redemption},
		by.Did(audit.Record{At: now, Action: "GUARD_REDEEM", UserID: e.UserID, Target: e.ID,
			Detail: e.Action + " " + e.Reference}))
	if errors.Is(err, commit.ErrFenced) || errors.Is(err, commit.ErrUnknown) {
		err = s.settled(ctx, r.Errand, err)
	}
	if err != nil {
		return Redeemed{}, err
	}
	return r, nil
}

// settled decides a redemption whose commit was refused or is unknown: nil if it is the one that took effect.
func (s *Service) settled(ctx context.Context, mine Errand, cause error) error {
	e, err := s.Store.Get(ctx, mine.ID)
	switch {
	case err != nil:
		return err
	case e.Redemption == mine.Redemption:
		return nil
	case !e.RedeemedAt.IsZero():
		return used(e)
	}
	return cause
}

// used returns GRANT_USED for an errand that was redeemed.
func used(e Errand) error {
	if e.RedeemedAt.IsZero() {
		return nil
	}
	refusal := fault.New(fault.GrantUsed, "the grant was already redeemed")
	refusal.RedeemedAt = e.RedeemedAt
	return refusal
}
