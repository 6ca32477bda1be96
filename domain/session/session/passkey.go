package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
)

// Passkeys verifies the passkeys of logins; device.Service is it.
type Passkeys interface {
	LoginOptions() (options json.RawMessage, ticket string)
	Entered(ctx context.Context, ticket string, answer []byte, by audit.By) (user.User, device.Asserted, error)
}

// Concludes completes the challenge of a login that needs no further method; stepup.Answerer is it.
type Concludes interface {
	Conclude(ctx context.Context, c challenge.Challenge, by device.Asserted, who audit.By) (*challenge.Result, error)
}

// PasskeyRequest is one attempt to log in with a passkey: the ticket of the options, and the answer of the browser.
type PasskeyRequest struct {
	Ticket    string
	Assertion []byte
	DeviceID  string
	Origin    client.Origin
	Starter   challenge.Starter
	Proof     dpop.Request // of the key to which the session will be bound; none without one
}

// LoginByPasskey verifies a passkey in place of identifier and password, and starts the challenge that creates the
// session. If the policy lets a passkey suffice, the challenge is completed at once; its outcome is nil as long as the
// session is not created. A ticket is used once.
//
// All refusals get the same answer and wait for the disk alike. The reasons are those of the assertion, an account that
// may not log in or must first get another password, and a blocked country.
//
// Errors: INVALID_CREDENTIALS, DPOP_INVALID, RATE_LIMITED, MFA_NOT_AVAILABLE when the policy requires a method that the
// account does not own beside the passkey, OVERLOADED, those of challenge.Starts, UNAVAILABLE.
func (s *Service) LoginByPasskey(ctx context.Context, r PasskeyRequest) (challenge.Started, *challenge.Result, error) {
	var none challenge.Started
	key, used, err := s.keyOf(r.Proof)
	if err != nil {
		return none, nil, err
	}
	r.Starter = Clip(r.Starter)
	by := audit.By{RequestID: r.Starter.RequestID, IP: r.Starter.IP}
	if err := s.Spray.Judge(password.Guard{}, s.Guards.Rules(), r.Origin); err != nil {
		return none, nil, err
	}
	u, proof, err := s.Passkeys.Entered(ctx, r.Ticket, r.Assertion, by)
	switch {
	case fault.CodeOf(err) == fault.DeviceSignatureInvalid:
		return none, nil, s.refusePasskey(ctx, "", "", r)
	case err != nil:
		return none, nil, err
	}
	for range 3 {
		if reason := s.whyNot(u, r.Starter); reason != "" {
			return none, nil, s.refusePasskey(ctx, u.ID, reason, r)
		}
		started, err := s.start(ctx, u, r.DeviceID, key.Thumbprint, r.Origin, challenge.StartRequest{Starter: r.Starter,
			Entry: challenge.Key, Counts: proof.Counts, With: used})
		if errors.Is(err, commit.ErrFenced) { // the account changed; the passkey may have been removed
			if err := s.spent(ctx, key, used); err != nil {
				return none, nil, err
			}
			cv := u.CV
			if u, err = s.Users.Get(ctx, u.ID); err == nil && u.CV != cv {
				return none, nil, s.refusePasskey(ctx, "", "", r)
			}
			if err == nil {
				continue
			}
		}
		if err != nil || started.Challenge.Entry != challenge.Alone {
			return started, nil, err
		}
		result, err := s.Concludes.Conclude(ctx, started.Challenge, proof, by)
		if err != nil {
			return none, nil, err
		}
		started.Challenge.State = challenge.Done
		return started, result, nil
	}
	return none, nil, fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}

// refusePasskey is refuse for a passkey. userID is "" for a refused assertion, which names no account for certain.
func (s *Service) refusePasskey(ctx context.Context, userID string, reason Reason, r PasskeyRequest) error {
	if userID == "" {
		s.Spray.Wrong(ctx, r.Origin)
	}
	return s.refuse(ctx, userID, Refusal{Reason: reason}, r.Origin.Site, r.Starter, "passkey refused")
}
