package totp

import (
	"context"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// ActionVerify is the audit name of a refused code at a guarded endpoint.
const ActionVerify = "OTP_VERIFY"

// maxFenced bounds how often a decision is repeated because another node wrote a row between reading and writing.
// Within one process the callers of a user take turns.
const maxFenced = 20

// Judge decides a code that answers a challenge of a user (stepup.Judge). A right one names the step it uses, and Use
// turns that into the write. A code whose step was already used is wrong.
func (s *Service) Judge(ctx context.Context, userID, code string) (challenge.Verdict, *challenge.Use, error) {
	d, err := s.Store.Get(ctx, userID) // for a decoy too, which takes the same steps
	if fault.CodeOf(err) == fault.TOTPNotDefined {
		return challenge.Wrong, nil, nil
	}
	if err != nil {
		return challenge.Undecided, nil, err
	}
	step, right, err := s.right(d, code)
	if err != nil || !right {
		return challenge.Wrong, nil, err
	}
	return challenge.Right, &challenge.Use{Key: d.ID, Value: step}, nil
}

// Use returns the writes that use up the step of an accepted code (actors.Uses).
func Use(c challenge.Challenge, use challenge.Use) []commit.Write {
	return []commit.Write{UseStep{UserID: c.UserID, ID: use.Key, Step: use.Value}}
}

// right reports whether code is valid now and unused.
func (s *Service) right(d Definition, code string) (step int64, ok bool, err error) {
	secret, err := Reveal(s.Ring, d)
	if err != nil {
		return 0, false, err
	}
	step, ok = Match(secret, s.Now(), code)
	return step, ok && step > d.LastStep, nil
}

// Verify checks the code that a request carries in addition to its credential (D-AUTH-08). An accepted one is used
// up, durably, before Verify returns. Wrong ones count with those of the challenges that the user starts in a
// session. Attempt and verdict are one fenced write.
//
// Errors: OTP_REQUIRED without a code or an authenticator, OTP_INVALID, RATE_LIMITED, UNAVAILABLE.
func (s *Service) Verify(ctx context.Context, who audit.By, code string) error {
	if who.UserID == "" || code == "" {
		return fault.New(fault.OTPRequired,
			"the current code of the authenticator is required; set up an authenticator first if there is none")
	}
	if !challenge.Code(code) { // no attempt
		return fault.New(fault.OTPInvalid, "the code must have 6 digits")
	}
	leave, err := s.turns.Take(ctx, who.UserID)
	if err != nil {
		return err
	}
	defer leave()
	return commit.Retry(maxFenced, func() error { return s.verify(ctx, who, code) })
}

func (s *Service) verify(ctx context.Context, who audit.By, code string) error {
	d, err := s.Store.Get(ctx, who.UserID)
	if fault.CodeOf(err) == fault.TOTPNotDefined {
		return fault.New(fault.OTPRequired, "no authenticator is defined; set one up first")
	}
	if err != nil {
		return err
	}
	b, err := s.Budgets.Budget(ctx, who.UserID, challenge.FlowSession)
	if err != nil {
		return err
	}
	now := s.Now()
	if wait := b.Wait(now, s.Rules, challenge.TOTP); wait > 0 {
		return fault.New(fault.RateLimited, "too many wrong values; try later").After(wait)
	}
	step, right, err := s.right(d, code)
	if err != nil {
		return err
	}
	if right && !b.Off(s.Rules, challenge.TOTP) {
		return s.Commit.Commit(ctx, accepted(b), UseStep{UserID: d.UserID, ID: d.ID, Step: step})
	}
	u, err := s.Users.Get(ctx, who.UserID)
	if err != nil {
		return err
	}
	spent := b.Spend(now, s.Rules, challenge.TOTP)
	writes := s.spent(u, b, spent, s.Rules, who.IP)
	if err := s.Commit.Commit(ctx, append(writes, refused(now, who, ActionVerify, d.ID))...); err != nil {
		return err
	}
	left := spent.Left(now, s.Rules, challenge.TOTP)
	refusal := fault.New(fault.OTPInvalid, "the code is wrong")
	refusal.AttemptsLeft = &left
	return refusal
}

// spent returns the writes of a wrong code that was counted.
func (s *Service) spent(u user.User, before, after challenge.Budget, r challenge.Rules, ip string) []commit.Write {
	writes := []commit.Write{challenge.Spend{Budget: after}}
	if row := after.Row(challenge.TOTP); row > before.Row(challenge.TOTP) {
		writes = append(writes, challenge.Guessed(s.Notices, u.Account(), after.Flow, challenge.TOTP, row, r, ip)...)
	}
	return writes
}

// accepted is the condition under which a right code was judged; it resets the consecutive wrong ones.
func accepted(b challenge.Budget) commit.Write {
	if b.Row(challenge.TOTP) > 0 {
		return challenge.Spend{Budget: b.EndRow(challenge.TOTP)}
	}
	return commit.Guard{On: commit.AttemptBudget, Key: b.Key(), Version: b.Version}
}

func refused(now time.Time, who audit.By, action, target string) audit.Record {
	return who.Did(audit.Record{At: now, UserID: who.UserID, Action: action, Target: target, Outcome: audit.Refused})
}
