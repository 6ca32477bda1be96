package replace

import (
	"context"
	"errors"
	"fmt"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/token"
	"castellan/domain/session/session"
)

// ResetRequest names the account whose password was forgotten.
type ResetRequest struct {
	CountryCode string `json:"countryCode"`
	Phone       string `json:"phoneNumber"`
}

// Validate refuses text that cannot be a phone number.
//
// Errors: INVALID_FIELD.
func (r ResetRequest) Validate() error {
	_, err := r.who()
	return err
}

// who reads the number.
func (r ResetRequest) who() (user.Identifier, error) {
	who, problems := user.LookUp(&r.CountryCode, &r.Phone, nil)
	return who, fault.All(problems)
}

// StartReset starts the challenge that proves phone and mail. Some phones get a decoy: a phone without an account,
// and an account that is inactive, has no reachable mail or is blocked at the starter's location. A decoy takes the
// same steps, statements and bytes, and its answer looks the same.
//
// Errors: INVALID_FIELD, RATE_LIMITED when the phone or the network started too many, MFA_NOT_AVAILABLE when the
// installation cannot send, UNAVAILABLE.
func (s *Service) StartReset(ctx context.Context, r ResetRequest, from challenge.Starter) (started challenge.Started,
	err error) {
	who, err := r.who()
	if err != nil {
		return started, err
	}
	dial, err := user.DialCode(r.CountryCode)
	if err != nil {
		return started, err
	}
	from = session.Clip(from)
	subject, former, err := s.Engine.Subject(ctx, who.Phone)
	if err != nil {
		return started, err
	}
	if err := s.admit(ctx, subject, client.PrefixOf(from.IP), former); err != nil {
		return started, err
	}
	err = commit.Retry(maxFenced, func() (err error) {
		started, err = s.startReset(ctx, who, dial, subject, from)
		return err
	})
	return started, err
}

// admit counts a start for the network and the phone, durably. A refused start counts for neither. former are the
// former subjects of the phone.
func (s *Service) admit(ctx context.Context, subject, prefix string, former []string) error {
	if s.Networks == nil || s.Phones == nil {
		return nil
	}
	network, err := s.Networks.Charge(ctx, "reset/"+prefix, "")
	if err != nil {
		return tooMany(err, "limits.reset_per_ip")
	}
	keys := make([]string, len(former))
	for i, f := range former {
		keys[i] = "reset/" + f
	}
	phone, err := s.Phones.Charge(ctx, "reset/"+subject, "", keys...)
	if err != nil {
		return errors.Join(tooMany(err, "limits.reset_per_phone"), network.Return(context.WithoutCancel(ctx)))
	}
	network.Wrong() // a started reset counts
	phone.Wrong()
	return nil
}

// tooMany turns a guard's refusal into the error of a start; limit is the setting of the guard.
func tooMany(err error, limit string) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.RateLimited {
		return fault.New(fault.RateLimited, "the reset was started too often; try later").After(f.RetryAfter).By(limit)
	}
	return err
}

func (s *Service) startReset(ctx context.Context, who user.Identifier, dial, subject string,
	from challenge.Starter) (challenge.Started, error) {
	u, err := s.Users.ByPhone(ctx, who.Phone, who.Former)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return challenge.Started{}, err
	}
	if err == nil && u.Email != "" && s.usable(u, from) {
		account := u.Account()
		// The hint shows as much of the number as the request gave as its country code, even if the account splits
		// the number differently.
		account.Dial = dial
		started, err := s.begin(ctx, challenge.StartRequest{Account: account}, u.ID, from)
		if fault.CodeOf(err) != fault.MFANotAvailable {
			return started, err
		}
	}
	return s.begin(ctx, challenge.StartRequest{Account: challenge.Account{Phone: who.Phone, Dial: dial}, Decoy: subject},
		subject, from)
}

func (s *Service) begin(ctx context.Context, r challenge.StartRequest, owner string,
	from challenge.Starter) (challenge.Started, error) {
	r.Action, r.Starter = ActionReset, from
	r.With = []commit.Write{audit.Record{At: s.Now(), UserID: owner, Action: ActionReset, Target: owner,
		Outcome: audit.Success, IP: from.IP,
		RequestID: from.RequestID, Detail: "started"}}
	return s.Engine.Start(ctx, r)
}

// ResetAction is the action of RESET_PASSWORD. Phone and mail are proven, and the outcome carries the header ot-auth,
// which sets the password once. It invalidates an earlier token of the user (D-AUTH-10).
func (s *Service) ResetAction() challenge.Action {
	return challenge.Action{Code: ActionReset, Flow: challenge.FlowReset, Build: s.reset}
}

func (s *Service) reset(_ context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
	jti := id.New(x.Now)
	until := x.Now.Add(s.TokenTTL)
	signed, err := s.Signer.Sign(token.Claims{Class: token.OTAuth, ID: jti, IssuedAt: x.Now, ExpiresAt: until})
	if err != nil {
		return challenge.Result{}, nil, fmt.Errorf("reset: %w", err)
	}
	return challenge.Result{Success: true, Headers: map[string]string{string(token.OTAuth): signed}},
		[]commit.Write{Issue{Token{ID: s.hash(jti), UserID: x.Challenge.UserID, CV: x.Challenge.CV, CreatedAt: x.Now,
			ExpiresAt: until}}}, nil
}

// hash returns the stored form of a jti, under the steady key, so a rotation does not lose it.
func (s *Service) hash(jti string) string { return s.Ring.StableHash("ot-auth", jti) }

// token finds the stored form of a jti, even if its key was replaced since the token was issued.
func (s *Service) token(ctx context.Context, jti string) (Token, error) {
	t, err := s.Tokens.Token(ctx, s.hash(jti))
	for _, former := range s.Ring.Former("ot-auth", jti) {
		if fault.CodeOf(err) != fault.RecordNotFound {
			break
		}
		t, err = s.Tokens.Token(ctx, former)
	}
	return t, err
}

// UpdateRequest sets the password of the account that an ot-auth token names.
type UpdateRequest struct {
	TokenID  string // jti of a verified ot-auth
	Password string
	Verify   string
	From     challenge.Starter
}

// Update sets the password, uses up the token and ends every session of the account, all in one unit. A refused
// request leaves the token unchanged.
//
// Errors: TOKEN_REVOKED for a token that was used, replaced, or made before the account's credentials changed;
// GEO_BLOCKED, INVALID_FIELD, PASSWORD_REUSED, OVERLOADED, UNAVAILABLE.
func (s *Service) Update(ctx context.Context, r UpdateRequest) error {
	r.From = session.Clip(r.From)
	return commit.Retry(maxFenced, func() error { return s.update(ctx, r) })
}

func (s *Service) update(ctx context.Context, r UpdateRequest) error {
	place, err := s.Hasher.Admit(s.caller(r.From))
	if err != nil {
		return err
	}
	defer place.Leave()
	t, u, err := s.redeemable(ctx, r.TokenID, r.From)
	if err != nil {
		return err
	}
	if err := s.check(u, r.Password, r.Verify); err != nil {
		return err
	}
	stored, err := s.secret(ctx, place, u.ID) // it is not older than u; if it is younger, the fence fails
	if err != nil {
		return err
	}
	if err := fresh(ctx, place, r.Password, stored.Hash, stored.Previous); err != nil {
		return err
	}
	hash, err := place.Hash(ctx, r.Password)
	if err != nil {
		return err
	}
	now := s.Now()
	writes := append(session.EndAll(u, now),
		user.SetPassword{UserID: u.ID, CV: u.CV, Hash: hash},
		Redeem{UserID: u.ID, ID: t.ID},
		// The new password clears the tries and the known prefixes. From now on the account knows only the prefix
		// that proved phone and mail (D-GEN-14).
		password.ResetBy(u.ID, client.PrefixOf(r.From.IP), now),
		record(now, u.ID, ActionSet, audit.Success, r.From, "with ot-auth; all sessions ended"))
	return s.Commit.Commit(ctx, append(writes, s.notice(u, r.From.IP)...)...)
}

// redeemable finds the account of a token that is still valid.
func (s *Service) redeemable(ctx context.Context, jti string, from challenge.Starter) (Token, user.User, error) {
	revoked := fault.New(fault.TokenRevoked, "the ot-auth token was already used or is no longer valid")
	t, err := s.token(ctx, jti)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = revoked
	}
	if err != nil {
		return t, user.User{}, err
	}
	if !s.Now().Before(t.ExpiresAt) {
		return t, user.User{}, fault.New(fault.TokenExpired, "the ot-auth token has expired")
	}
	u, err := s.Users.Get(ctx, t.UserID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return t, u, revoked
	case err != nil:
		return t, u, err
	case u.CV != t.CV || !u.Active() || u.Demo && !s.Dev:
		return t, u, revoked
	case !s.Admits(u, from):
		return t, u, fault.New(fault.GeoBlocked, "the account cannot be used from this country")
	}
	return t, u, nil
}
