package auth_test

import (
	"context"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/auth"
)

// passkeyed is an account with a passkey.
type passkeyed struct{ passkeys bool }

func (p passkeyed) Account(_ context.Context, userID string) (challenge.Account, error) {
	return challenge.Account{UserID: userID, Passkeys: p.passkeys}, nil
}

// A recovery code is used only where it replaces a passkey: for a change of factors of an account with one.
func TestStartWithRecoveryCode(t *testing.T) {
	used := []commit.Write{commit.Unflushed{}}
	for name, c := range map[string]struct {
		action   string
		passkeys bool
		code     string
		refusal  error
		redeemed bool
		with     int
		want     fault.Code
	}{
		"a change":          {mfa.DeviceAdd, true, "code", nil, true, 1, ""},
		"of another action": {mfa.Withdraw, true, "code", nil, false, 0, ""},
		"without a passkey": {mfa.DeviceAdd, false, "code", nil, false, 0, ""},
		"without a code":    {mfa.DeviceAdd, true, "", nil, false, 0, ""},
		"a wrong code": {mfa.DeviceAdd, true, "x", fault.New(fault.RecoveryCodeInvalid, "no"), true, 0,
			fault.RecoveryCodeInvalid},
	} {
		e, redeemed := &engine{}, false
		s := auth.Starter{Starts: e, Accounts: passkeyed{c.passkeys},
			Recovery: func(_ context.Context, who audit.By, code string) ([]commit.Write, error) {
				redeemed = true
				if who.UserID != "u1" || code != c.code {
					t.Errorf("%s: %+v, %s", name, who, code)
				}
				return used, c.refusal
			}}
		who := caller
		who.RecoveryCode = c.code
		_, _, err := s.Start(t.Context(), who, c.action, nil)
		if fault.CodeOf(err) != c.want || redeemed != c.redeemed {
			t.Errorf("%s: redeemed %t, %v", name, redeemed, err)
		}
		if c.want != "" {
			if len(e.asked) != 0 {
				t.Errorf("%s: a start was made", name)
			}
			continue
		}
		if got := e.asked[0]; got.Recovered != (c.with > 0) || len(got.With) != c.with {
			t.Errorf("%s: %+v", name, got)
		}
	}
	e := &engine{refuse: []error{commit.ErrFenced}}
	n := 0
	s := auth.Starter{Starts: e, Accounts: passkeyed{true},
		Recovery: func(context.Context, audit.By, string) ([]commit.Write, error) { n++; return used, nil }}
	who := caller
	who.RecoveryCode = "code"
	_, _, err := s.Start(t.Context(), who, mfa.TOTPDeactivate, nil)
	if storetest.Must(t, err); n != 2 || !e.asked[1].Recovered {
		t.Errorf("%d codes were checked for a repeated start", n)
	}
}
