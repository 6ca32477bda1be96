package auth

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/dpop"
	"castellan/domain/proof/stepup"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/http/wire"
)

// Starter begins the challenge of an endpoint, whether the endpoint starts one itself or the
// configuration guards it with one (D-2FA-28).
type Starter struct {
	Starts   challenge.Starts
	Accounts stepup.Accounts
	// Proofs verifies the proofs of session keys; nil: no client is remembered.
	Proofs *dpop.Verifier
	// Recovery checks a recovery code in place of a passkey (totp.Service.Redeem).
	Recovery func(ctx context.Context, who audit.By, code string) ([]commit.Write, error)
	// Public starts the challenges of the actions that need no session, by their code. It gets the
	// result of prepare, and must not reveal whether it found an account.
	Public map[string]func(ctx context.Context, from challenge.Starter, command []byte) (challenge.Started, error)
}

var _ edge.Starter = Starter{}

func (s Starter) Start(ctx context.Context, who rest.Caller, action string,
	command []byte) (any, []rest.Header, error) {
	if start := s.Public[action]; start != nil {
		started, err := start(ctx, From(who), command)
		if err != nil {
			return nil, nil, err
		}
		r := wire.Started(started)
		return r.Body, r.Headers, nil
	}
	key := s.key(who)
	for range 3 {
		account, err := s.Accounts.Account(ctx, who.UserID)
		if err != nil {
			return nil, nil, err
		}
		r := challenge.StartRequest{Action: action, Account: account, Starter: From(who), Proven: true, Command: command,
			Key: key}
		if who.RecoveryCode != "" && account.Passkeys && mfa.ChangesFactors(action) && s.Recovery != nil {
			r.With, err = s.Recovery(ctx, who.By(), who.RecoveryCode)
			r.Recovered = err == nil
		}
		var started challenge.Started
		if err == nil {
			started, err = s.Starts.Start(ctx, r)
		}
		if errors.Is(err, commit.ErrFenced) {
			continue // the account changed while it was decided
		}
		if err != nil {
			return nil, nil, err
		}
		answer := wire.Started(started)
		return answer.Body, answer.Headers, nil
	}
	return nil, nil, fault.New(fault.Unavailable, "the account is busy; try again").After(time.Second)
}

// key returns the key of the caller's session. Its proof is checked and used up only if it can spare the caller a
// method.
func (s Starter) key(who rest.Caller) challenge.ClientKey {
	k := challenge.ClientKey{Thumbprint: who.KeyThumbprint, Proven: who.KeyProved}
	if s.Proofs == nil || k.Thumbprint == "" || k.Proven || who.KeyProof == "" {
		return k
	}
	done := false
	k.Prove = func(ctx context.Context) error {
		if done {
			return nil
		}
		p, err := s.Proofs.Check(dpop.Request{Proof: who.KeyProof, Method: who.Method, Host: who.Host, Path: who.Path,
			Token: who.KeyToken})
		if err == nil && subtle.ConstantTimeCompare([]byte(p.Thumbprint), []byte(k.Thumbprint)) != 1 {
			err = dpop.Refused()
		}
		if err == nil {
			err = s.Proofs.Spend(ctx, p)
		}
		done = err == nil
		return err
	}
	return k
}

// From is the part of its starter that a challenge stores.
func From(who rest.Caller) challenge.Starter {
	s := challenge.Starter{SessionID: who.SessionID, Login: who.Login, Country: who.Country, Brand: who.Device.Brand,
		Model: who.Device.Model, Description: who.Device.Description, RequestID: who.RequestID}
	if who.LanguageAsked { // else the user's own language takes precedence (D-GEN-16)
		s.Language = who.Language
	}
	if s.Description == "" {
		s.Description = who.Device.UserAgent
	}
	if who.IP.IsValid() {
		s.IP = who.IP.String()
	}
	return s
}

// Runner runs captured requests; edge.Server is one.
type Runner interface {
	RehearseCaptured(ctx context.Context, c edge.Captured) (*edge.Rehearsal, error)
	RunRehearsed(ctx context.Context, c edge.Captured, h *edge.Rehearsal) (json.RawMessage, error)
}

// Captured is the action that runs a captured request when its challenge is complete. Every
// guard but the second factor checks the caller again, with the state of that moment, and the
// handler's answer becomes the data. If the endpoint that names actions started it without a
// request, it simply succeeds.
func Captured(code string, run Runner) challenge.Action {
	return challenge.Action{Code: code, Flow: challenge.FlowSession,
		Describe: func(command []byte) []challenge.Detail {
			var c edge.Captured
			if json.Unmarshal(command, &c) != nil || c.Method == "" {
				return nil
			}
			details, err := c.Details()
			if err != nil { // the request was bound before it was captured
				return nil
			}
			return details
		},
		Prepare: func(ctx context.Context, x challenge.Execution) (any, error) {
			var c edge.Captured
			if err := json.Unmarshal(x.Command, &c); err != nil {
				return nil, err
			}
			return run.RehearseCaptured(ctx, c)
		},
		Exec: func(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
			var c edge.Captured
			if err := json.Unmarshal(x.Command, &c); err != nil {
				return challenge.Result{}, err
			}
			if c.Method == "" {
				return challenge.Result{Success: true}, nil
			}
			if c.Shown != nil {
				c.Shown.ChallengeID, c.Shown.IntentDigest = x.Challenge.ID, x.Challenge.IntentDigest
			}
			rehearsed, _ := x.Prepared.(*edge.Rehearsal)
			data, err := run.RunRehearsed(ctx, c, rehearsed)
			if err != nil {
				return challenge.Result{}, err
			}
			return challenge.Result{Success: true, Data: data}, nil
		}}
}
