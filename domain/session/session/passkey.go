package session

import (
	"cmp"
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
		return none, nil, s.refusePasskey(ctx, user.User{}, "", r)
	case err != nil:
		return none, nil, err
	}
	for range 3 {
		if reason := s.whyNot(u, r.Starter); reason != "" {
			return none, nil, s.refusePasskey(ctx, u, reason, r)
		}
		started, err := s.startByPasskey(ctx, r, key.Thumbprint, u, proof.Counts, used)
		if errors.Is(err, commit.ErrFenced) { // the account changed; the passkey may have been removed
			if used != nil {
				if gone, err := s.Sessions.Proved(ctx, used, s.Now()); err != nil || gone {
					return none, nil, cmp.Or(err, s.Proofs.Used(key))
				}
			}
			cv := u.CV
			if u, err = s.Users.Get(ctx, u.ID); err == nil && u.CV != cv {
				return none, nil, s.refusePasskey(ctx, u, "", r)
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

func (s *Service) startByPasskey(ctx context.Context, r PasskeyRequest, thumbprint string, u user.User,
	counts bool, with []commit.Write) (challenge.Started, error) {
	cmd := command{Roles: u.AllRoles(), DeviceID: r.DeviceID, Day: u.LastLoginDay, Thumbprint: thumbprint}
	cmd.arrive(u, r.Origin)
	return s.Starts.Start(ctx, challenge.StartRequest{Action: ActionLogin, Account: u.Account(), Starter: r.Starter,
		Proven: true, Entry: challenge.Key, Counts: counts, Command: cmd.pack(), With: with})
}

// refusePasskey records a refused login and returns the one answer to all of them. reason is "" for a refused
// assertion, which names no account for certain.
func (s *Service) refusePasskey(ctx context.Context, u user.User, reason Reason, r PasskeyRequest) error {
	now, from := s.Now(), r.Starter
	writes := []commit.Write{Refused{Site: r.Origin.Site, Minute: now.Truncate(time.Minute), Count: 1}}
	if reason != "" {
		line := refusal(u.ID, now, from)
		line.Refusal = Refusal{Reason: reason}
		writes = []commit.Write{
			audit.Record{At: now, UserID: u.ID, Action: ActionLogin, Target: u.ID, Outcome: audit.Refused, IP: from.IP,
				RequestID: from.RequestID, Detail: "passkey refused"},
			RememberRefused{line}}
	} else {
		s.Spray.Wrong(ctx, r.Origin)
	}
	if err := s.Commit.Commit(ctx, writes...); err != nil {
		return err
	}
	return wrongCredentials()
}
