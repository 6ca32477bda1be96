package totp_test

import (
	"context"
	"strings"
	"testing"

	"castellan/domain/account/user/usertest"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

// overtaken is a committer whose units come too late some times.
type overtaken struct {
	commit.Committer
	n int
}

func (o *overtaken) Commit(ctx context.Context, ws ...commit.Write) error {
	if o.n--; o.n >= 0 {
		return commit.ErrFenced
	}
	return o.Committer.Commit(ctx, ws...)
}

// A decision is repeated after a concurrent change, twenty times at most.
func TestDecisionsAreRepeated(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	o := &overtaken{Committer: d.db}
	d.Commit = o
	recover := func() error { _, err := d.Recover(t.Context(), d.who, d.recovery(0)); return err }
	verify := func() error { return d.Verify(t.Context(), d.who, d.code(0)) }
	for name, do := range map[string]func() error{"recover": recover, "verify": verify} {
		o.n = 20
		if err := do(); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "busy") {
			t.Errorf("%s: %v", name, err)
		}
		o.n = 19
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After the tenth wrong code in a row the user is told of guesses, and after the last one that the factor is off. Each
// message is sent once, also if wrong codes follow.
func TestGuessesAreToldOnce(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.Rules.FactorAttempts, d.Rules.TOTPBudget = 12, 20
	for n := range 15 {
		storetest.Wants(t, d.Verify(t.Context(), d.who, d.wrong()), fault.OTPInvalid)
		guessed, off := len(d.told(message.FactorGuessed)), len(d.told(message.FactorOff))
		if want := n + 1; guessed != min(1, want/10) || off != min(1, want/12) {
			t.Errorf("after %d wrong codes: %d messages of guesses, %d that the factor is off", want, guessed, off)
		}
	}
	storetest.Wants(t, d.Verify(t.Context(), d.who, d.code(0)), fault.OTPInvalid) // right, but the factor is off
}

// A secret that another key sealed is a failure and no wrong code.
func TestUnreadableSecret(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	code := d.code(0)
	persistencetest.Exec(t, d.db, "UPDATE totp SET secret = ?", []byte("broken"))
	if v, _, err := d.Judge(t.Context(), d.who.UserID, code); err == nil || v == challenge.Right {
		t.Errorf("%v, %v", v, err)
	}
	if err := d.Verify(t.Context(), d.who, code); err == nil || fault.CodeOf(err) == fault.OTPInvalid {
		t.Errorf("%v", err)
	}
	if _, err := d.Recover(t.Context(), d.who, d.recovery(0)); err == nil ||
		fault.CodeOf(err) == fault.RecoveryCodeInvalid {
		t.Errorf("%v", err)
	}
	v, use, err := d.Judge(t.Context(), usertest.Sample(2).ID, code)
	if v != challenge.Wrong || use != nil || err != nil {
		t.Errorf("without an authenticator: %v, %+v, %v", v, use, err)
	}
	storetest.Wants(t, d.Verify(t.Context(), d.who, ""), fault.OTPRequired)
	d.who.UserID = usertest.Sample(2).ID
	storetest.Wants(t, d.Verify(t.Context(), d.who, code), fault.OTPRequired)
}
