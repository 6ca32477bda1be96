package totp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/turn"
)

// The codes of the actions, which are also their names in the audit.
const (
	ActionSetup      = "TOTP_SETUP"
	ActionDeactivate = "TOTP_DEACTIVATE"
)

// Service manages the authenticators of accounts. All fields are required.
type Service struct {
	Store   Store
	Users   user.Store
	Budgets Budgets
	Commit  commit.Committer
	Ring    *keyring.Ring
	Notices challenge.Notices
	// Rules are those of challenges: wrong codes count together.
	Rules    challenge.Rules
	Recovery Limit
	Issuer   string // shown by the app next to the account
	Now      func() time.Time

	turns turn.Turns
}

// Limit bounds the wrong recovery codes of a user (D-TOTP-06).
type Limit struct {
	Attempts int
	Window   time.Duration // rolling
}

// Budgets reads the wrong values of a user; challenge.Store implements it.
type Budgets interface {
	Budget(ctx context.Context, subject string, flow challenge.Flow) (challenge.Budget, error)
}

// Definable is the condition of a setup: TOTP_ALREADY_DEFINED if the caller has an authenticator.
func (s *Service) Definable(ctx context.Context, userID string) error {
	u, err := s.Users.Get(ctx, userID)
	if err == nil && u.TOTP {
		err = alreadyDefined()
	}
	return err
}

// Removable is the condition of a deactivation: TOTP_NOT_DEFINED if the caller has no authenticator.
func (s *Service) Removable(ctx context.Context, userID string) error {
	u, err := s.Users.Get(ctx, userID)
	if err == nil && !u.TOTP {
		err = NotDefined()
	}
	return err
}

// NotDefined returns the error of an operation that needs an authenticator.
func NotDefined() error {
	return fault.New(fault.TOTPNotDefined, "no authenticator is defined")
}

func alreadyDefined() error {
	return fault.New(fault.TOTPAlreadyDefined, "an authenticator is already defined; deactivate it first")
}

// SetupAction is the action of TOTP_SETUP. The secret and the recovery codes are created when the challenge is
// complete. Only its outcome contains them in plain text (D-TOTP-09).
func (s *Service) SetupAction() challenge.Action {
	return challenge.Action{Code: ActionSetup, Flow: challenge.FlowSession, Prepare: s.prepare, Exec: s.setup}
}

func (s *Service) DeactivateAction() challenge.Action {
	return challenge.Action{Code: ActionDeactivate, Flow: challenge.FlowSession, Exec: s.deactivate}
}

// fresh is an authenticator that is not defined yet.
type fresh struct {
	define Define
	data   json.RawMessage
}

// setupData is the result of a setup, in both spellings (D-TOTP-01).
type setupData struct {
	Base32     string   `json:"base32"`
	URL        string   `json:"otpAuthUrl"`
	QR         string   `json:"qrDataUrl"`
	Codes      []string `json:"recoveryCodes"`
	URLSnake   string   `json:"otp_auth_url"`
	QRSnake    string   `json:"qr_data_url"`
	CodesSnake []string `json:"recovery_codes"`
}

// prepare creates an authenticator. The picture takes as long as many commits, so it is drawn outside the
// transaction. setup checks the conditions, after the check of the credentials: a challenge of a changed account is
// closed and has no outcome (D-AUTH-11).
func (s *Service) prepare(ctx context.Context, x challenge.Execution) (any, error) {
	u, err := s.Users.Get(ctx, x.Challenge.UserID)
	if err != nil {
		return nil, err
	}
	drawn, err := Draw(s.Ring, s.Issuer, u, x.Now)
	if err != nil {
		return nil, err
	}
	f, a, codes := fresh{define: drawn.Define}, drawn.Access, drawn.Codes
	f.data, err = json.Marshal(setupData{a.Base32, a.URL, a.QRDataURL, codes, a.URL, a.QRDataURL, codes})
	return f, err
}

// Drawn is an authenticator that is not defined yet, with its secret and its recovery codes in plain text.
type Drawn struct {
	Define
	Access
	Codes []string
}

// Draw creates an authenticator for an account. Call it outside transactions: it draws a picture. issuer is
// Service.Issuer.
func Draw(ring *keyring.Ring, issuer string, u user.User, now time.Time) (d Drawn, err error) {
	secret := newSecret()
	if d.Access, err = access(issuer, u, secret); err != nil {
		return d, err
	}
	d.Define = Adopt(ring, u.ID, secret, now)
	for range RecoveryCodes {
		code := newRecoveryCode()
		d.Codes = append(d.Codes, code)
		d.Define.Codes = append(d.Define.Codes, ring.Hash(recoveryDomain, u.ID, d.Define.ID, canonical(code)))
	}
	return d, nil
}

// recoveryDomain separates the hashes of recovery codes from others.
const recoveryDomain = "recovery"

func (s *Service) setup(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
	f, ok := x.Prepared.(fresh)
	if !ok {
		return challenge.Result{}, errors.New("totp: setup without preparation")
	}
	c := x.Challenge
	u, err := s.changeable(ctx, c)
	if err != nil {
		return challenge.Result{}, err
	}
	switch _, err := s.Store.Get(ctx, c.UserID); {
	case err == nil:
		return challenge.Result{}, alreadyDefined()
	case fault.CodeOf(err) != fault.TOTPNotDefined:
		return challenge.Result{}, err
	}
	err = s.Commit.Commit(ctx, append(s.changed(x, u, message.TOTPOn, ActionSetup, f.define.ID),
		user.SetTOTP{UserID: c.UserID, CV: c.CV, Defined: true}, f.define)...)
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		err = alreadyDefined()
	}
	return challenge.Result{Success: true, Data: f.data}, err
}

func (s *Service) deactivate(ctx context.Context, x challenge.Execution) (challenge.Result, error) {
	c := x.Challenge
	d, err := s.Store.Get(ctx, c.UserID)
	if err != nil {
		return challenge.Result{}, err
	}
	u, err := s.changeable(ctx, c)
	if err != nil {
		return challenge.Result{}, err
	}
	writes := append(s.changed(x, u, message.TOTPOff, ActionDeactivate, d.ID),
		user.SetTOTP{UserID: c.UserID, CV: c.CV, Defined: false}, Remove{c.UserID})
	return challenge.Result{Success: true}, s.Commit.Commit(ctx, writes...)
}

// changeable returns the account of a completed challenge, which must be one that may change its factors.
func (s *Service) changeable(ctx context.Context, c challenge.Challenge) (user.User, error) {
	u, err := s.Users.Get(ctx, c.UserID)
	if err == nil {
		err = c.MayChangeFactors(u.PasskeyHandle != "")
	}
	return u, err
}

// changed returns the writes that report a change of the authenticator with an id, also to the owner.
func (s *Service) changed(x challenge.Execution, u user.User, k message.Kind, action, id string) []commit.Write {
	return append(x.Changed(action, id), s.Notices.Notice(u.Account(), k, nil, x.Challenge.Starter.IP)...)
}
