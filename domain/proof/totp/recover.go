package totp

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"
	"unicode"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// ActionRecover is the audit name of the use of a recovery code.
const ActionRecover = "TOTP_RECOVER"

// Recover returns the secret again for a recovery code, which is used up. The authenticator is unchanged (section 3.2
// of the interface). A message that commits with the use notifies the user.
//
// Errors: TOTP_NOT_DEFINED, RECOVERY_CODE_INVALID for a code that is unknown or used, RATE_LIMITED after too many of
// these, UNAVAILABLE.
func (s *Service) Recover(ctx context.Context, who audit.By, code string) (a Access, err error) {
	leave, err := s.turns.Take(ctx, who.UserID)
	if err != nil {
		return a, err
	}
	defer leave()
	err = commit.Retry(maxFenced, func() (err error) {
		a, err = s.recover(ctx, who, canonical(code))
		return err
	})
	return a, err
}

func (s *Service) recover(ctx context.Context, who audit.By, code string) (Access, error) {
	d, u, used, err := s.spend(ctx, who, code)
	if err != nil {
		return Access{}, err
	}
	secret, err := Reveal(s.Ring, d)
	if err != nil {
		return Access{}, err
	}
	a, err := access(s.Issuer, u, secret) // before the code is used: after that it must not fail
	if err != nil {
		return Access{}, err
	}
	if err = s.Commit.Commit(ctx, used...); err != nil {
		return Access{}, err
	}
	return a, nil
}

// Redeem checks a recovery code that replaces a passkey, and returns the writes that use it up and notify the owner.
// They are fenced, and commit with what the code permits. A wrong code is counted, durably, before Redeem returns.
//
// Errors: RECOVERY_CODE_INVALID, RATE_LIMITED, UNAVAILABLE; commit.ErrFenced if the count changed meanwhile.
func (s *Service) Redeem(ctx context.Context, who audit.By, code string) ([]commit.Write, error) {
	leave, err := s.turns.Take(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, _, used, err := s.spend(ctx, who, canonical(code))
	if fault.CodeOf(err) == fault.TOTPNotDefined {
		err = fault.New(fault.RecoveryCodeInvalid, "the account has no recovery codes")
	}
	return used, err
}

// spend checks a canonical recovery code, and returns the writes that use it up.
func (s *Service) spend(ctx context.Context, who audit.By, code string) (d Definition, u user.User,
	used []commit.Write, err error) {
	if d, err = s.Store.Get(ctx, who.UserID); err != nil {
		return d, u, nil, err
	}
	if !wellFormed(code) { // no attempt
		return d, u, nil, fault.New(fault.RecoveryCodeInvalid, "the text is not a recovery code")
	}
	b, err := s.Budgets.Budget(ctx, who.UserID, challenge.FlowRecovery)
	if err != nil {
		return d, u, nil, err
	}
	now := s.Now()
	if wait := b.Wait(now, s.recoveryRules(), challenge.TOTP); wait > 0 {
		return d, u, nil, fault.New(fault.RateLimited, "too many wrong recovery codes; try later").After(wait)
	}
	number, err := s.find(ctx, d, code)
	if err != nil {
		return d, u, nil, err
	}
	if u, err = s.Users.Get(ctx, who.UserID); err != nil {
		return d, u, nil, err
	}
	if number == 0 || b.Off(s.recoveryRules(), challenge.TOTP) {
		writes := s.spent(u, b, b.Spend(now, s.recoveryRules(), challenge.TOTP), s.recoveryRules(), who.IP)
		err := s.Commit.Commit(ctx, append(writes, refused(now, who, ActionRecover, d.ID))...)
		if err == nil {
			err = fault.New(fault.RecoveryCodeInvalid, "the recovery code is unknown or was used")
		}
		return d, u, nil, err
	}
	return d, u, append(s.Notices.Notice(u.Account(), message.RecoveryUsed, nil, who.IP),
		accepted(b),
		UseCode{UserID: d.UserID, ID: d.ID, Number: number, At: now},
		who.Did(audit.Record{At: now, UserID: who.UserID, Action: ActionRecover, Target: d.ID,
			Detail: "recovery code " + strconv.Itoa(number)})), nil
}

// find returns the number of the unused code that matches, 0 for none. It compares every code, including used ones,
// so that the response time reveals nothing.
func (s *Service) find(ctx context.Context, d Definition, code string) (number int, err error) {
	codes, err := s.Store.Codes(ctx, d.UserID, d.ID)
	if err != nil {
		return 0, err
	}
	for _, c := range codes {
		if s.Ring.Matches(c.Sum, recoveryDomain, d.UserID, d.ID, code) && c.UsedAt.IsZero() {
			number = c.Number
		}
	}
	return number, nil
}

// recoveryRules makes the budget of challenges count recovery codes.
func (s *Service) recoveryRules() challenge.Rules {
	return challenge.Rules{TOTPBudget: s.Recovery.Attempts,
		TOTPBudgetWindowMs: int64(s.Recovery.Window / time.Millisecond), FactorAttempts: s.Rules.FactorAttempts}
}

// RecoveryCodes is the number of recovery codes of an authenticator (section 8 of the interface).
const RecoveryCodes = 5

// A recovery code is two groups of base32 letters, 50 bits in all (D-TOTP-07).
const groupLetters = 5

// newRecoveryCode draws a code. rand.Text is uniform over the base32 alphabet.
func newRecoveryCode() string {
	t := strings.ToLower(rand.Text()[:2*groupLetters])
	return t[:groupLetters] + "-" + t[groupLetters:]
}

// canonical returns a recovery code without the changes of copying and typing: case, blanks, dashes of any kind,
// invisible marks and digits of other scripts (D-TOTP-02).
func canonical(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case unicode.Is(unicode.Dash, r):
			return -1
		}
		return r
	}, legible.Typed(code))
}

// wellFormed reports whether the text could be a code. Only such texts are hashed and counted: the input may be long.
func wellFormed(canonical string) bool {
	if len(canonical) != 2*groupLetters {
		return false
	}
	for i := range len(canonical) {
		if c := canonical[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}
