package totp_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// Section 3.2 of the interface: the secret is returned, the authenticator stays, the code is used up, and the user is
// notified.
func TestRecover(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	ctx := t.Context()
	storetest.Must(t, d.Verify(ctx, d.who, d.code(0)))
	before, err := d.store.Get(ctx, d.who.UserID)
	storetest.Must(t, err)
	_, err = d.Recover(ctx, audit.By{UserID: usertest.Sample(2).ID}, d.recovery(0))
	expect(t, err, fault.TOTPNotDefined)
	for i := range totp.RecoveryCodes {
		typed := []string{d.recovery(i), strings.ToUpper(d.recovery(i)),
			" " + strings.ReplaceAll(d.recovery(i), "-", " ") + " ", strings.ReplaceAll(d.recovery(i), "-", ""),
			strings.ReplaceAll(d.recovery(i), "-", "–")}[i]
		a, err := d.Recover(ctx, d.who, typed)
		if err != nil || a.Base32 != d.access["base32"] || a.URL != d.access["otpAuthUrl"] ||
			a.QRDataURL != d.access["qrDataUrl"] {
			t.Fatalf("code %d, typed %q: %v", i, typed, err)
		}
	}
	after := storetest.Value(d.store.Get(ctx, d.who.UserID))(t)
	u, err := d.Users.Get(ctx, d.who.UserID)
	if err != nil || !u.TOTP || u.CV != 2 || after.ID != before.ID || after.LastStep != before.LastStep ||
		string(after.Sealed) != string(before.Sealed) {
		t.Errorf("the authenticator changed: %+v, %+v, %v", after, u, err)
	}
	if told := d.told(message.RecoveryUsed); len(told) != 5 || told[0] != "user1@example.com recovery-used 203.0.113.9" {
		t.Errorf("notices %q", told)
	}
	// Each code is valid once; wrong ones count, right ones do not.
	for _, code := range []string{d.recovery(0), d.recovery(4), "abcde-fgh27", "aaaaa-aaaaa", "22222-77777"} {
		_, err := d.Recover(ctx, d.who, code)
		expect(t, err, fault.RecoveryCodeInvalid)
		d.pass(time.Minute)
	}
	for _, text := range []string{"no code at all", "", strings.Repeat("a", 1<<16)} { // cost no attempt
		_, err := d.Recover(ctx, d.who, text)
		expect(t, err, fault.RecoveryCodeInvalid)
	}
	_, err = d.Recover(ctx, d.who, "abcde-fgh27")
	if f := expect(t, err, fault.RateLimited); f.RetryAfter != 10*time.Minute {
		t.Errorf("retry after %v", f.RetryAfter)
	}
	// Wrong codes count in the row, not in the process, and separately from TOTP codes.
	_, err = nodeOf(d).Recover(ctx, d.who, "abcde-fgh27")
	expect(t, err, fault.RateLimited)
	storetest.Must(t, d.Verify(ctx, d.who, d.code(0)))
	storetest.Equal(t, len(d.told(message.RecoveryUsed)), 5, "notices")
	d.pass(10*time.Minute - time.Millisecond)
	_, err = d.Recover(ctx, d.who, "abcde-fgh27")
	expect(t, err, fault.RateLimited)
	d.pass(time.Millisecond)
	_, err = d.Recover(ctx, d.who, "abcde-fgh27")
	expect(t, err, fault.RecoveryCodeInvalid)
}

// SEC-08, SEC-18: one code used two hundred times succeeds once, on two nodes too.
func TestRecoverUnderRace(t *testing.T) {
	onBoth(t, func(t *testing.T, d *desk) {
		other := nodeOf(d)
		var n atomic.Int64
		codes := crowd(200, func() (err error) {
			if n.Add(1)%2 == 0 {
				_, err = other.Recover(t.Context(), d.who, d.recovery(2))
			} else {
				_, err = d.Recover(t.Context(), d.who, d.recovery(2))
			}
			return err
		})
		told := len(d.told(message.RecoveryUsed))
		if codes[""] != 1 || codes[fault.RecoveryCodeInvalid] != 5 || codes[fault.RateLimited] != 194 || told != 1 {
			t.Errorf("%v, %d notices", codes, told)
		}
	})
}

// A waiting caller can give up, and the turn passes on.
func TestTurnsPassOn(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	crowd(20, func() error { return d.Verify(gone, d.who, "000000") })
	storetest.Must(t, d.Verify(t.Context(), d.who, d.code(0)))
}

// A secret of another service is read in every spelling that apps show, and bounded.
func TestParseSecret(t *testing.T) {
	for _, text := range []string{"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "gezd gnbv gy3t qojq gezd gnbv gy3t qojq",
		"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ====="} {
		got, err := totp.ParseSecret(text)
		if err != nil || string(got) != "12345678901234567890" ||
			totp.FormatSecret(got) != "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "A", "GEZDGNBV", "1BADBASE32TEXT99", "GEZDGNBVGY3TQOJQ\nGEZDGNBVGY3TQOJQ"} {
		if got, err := totp.ParseSecret(text); err == nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

// An authenticator of another service is adopted with its sealed secret, which only its own definition reveals.
func TestAdoptedAuthenticator(t *testing.T) {
	ring, now := keyringtest.Ring(t, time.Now), time.UnixMilli(1_700_000_000_000)
	secret := []byte("12345678901234567890")
	d := totp.Adopt(ring, "u1", secret, now).Definition
	if d.UserID != "u1" || d.ID == "" || !d.CreatedAt.Equal(now) || bytes.Contains(d.Sealed, secret) {
		t.Errorf("%+v", d)
	}
	if got, err := totp.Reveal(ring, d); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%q, %v", got, err)
	}
	for _, edit := range []func(*totp.Definition){func(d *totp.Definition) { d.UserID = "u2" },
		func(d *totp.Definition) { d.ID = "other" }} {
		other := d
		edit(&other)
		if got, err := totp.Reveal(ring, other); err == nil {
			t.Errorf("revealed for another definition: %q", got)
		}
	}
}

// An account with a passkey sets an authenticator up and deletes it only with one, or with a recovery code. Only the
// latter lets the passkeys settle again.
func TestAuthenticatorOfAnAccountWithPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	u, err := d.Users.Get(t.Context(), d.who.UserID)
	storetest.Must(t, err)
	storetest.Must(t, d.db.Commit(t.Context(), user.SetPush{UserID: u.ID, CV: u.CV, Owned: true, Handle: "handle"}))
	persistencetest.Exec(t, d.db, "INSERT INTO passkey (device_id, user_id, credential_id, public_key, aaguid, "+
		"eligible, backed_up, sign_count, transports, brand, model, description, platform, created_at, last_used_at, "+
		"settling_since) VALUES ('p1', ?, ?, ?, ?, FALSE, FALSE, 0, '', '', '', '', '', 1700000000000, 0, 0)", u.ID,
		[]byte("c1"), `{"crv":"P-256","kty":"EC","x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",`+
			`"y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}`, make([]byte, 16))
	restarted := func(want bool) {
		t.Helper()
		all, err := factor.NewPasskeys(d.db).List(t.Context(), u.ID)
		if storetest.Must(t, err); len(all) != 1 || all[0].Restarted.Equal(d.Now()) != want {
			t.Errorf("%+v", all)
		}
	}
	for _, a := range []challenge.Action{d.DeactivateAction(), d.SetupAction()} {
		d.byPasskey, d.recovered = false, false
		_, err := d.run(a, u.ID)
		if code := fault.CodeOf(err); code != fault.MFANotAvailable {
			t.Errorf("%s without a passkey: %v", a.Code, err)
		}
		d.byPasskey = true
		_, err = d.run(a, u.ID)
		storetest.Must(t, err)
		restarted(false)
	}
	d.byPasskey, d.recovered = false, true
	_, err = d.run(d.DeactivateAction(), u.ID)
	storetest.Must(t, err)
	restarted(true)
}

// A recovery code that replaces a passkey is used up with the start that it permits, and the owner is told. A wrong one
// counts like a wrong recovery.
func TestRedeemRecoveryCode(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	writes, err := d.Redeem(t.Context(), d.who, " "+d.recovery(0))
	storetest.Must(t, err)
	if told := d.told(message.RecoveryUsed); len(told) != 0 {
		t.Errorf("told before the start: %v", told)
	}
	storetest.Must(t, d.db.Commit(t.Context(), writes...))
	if told := d.told(message.RecoveryUsed); len(told) != 1 {
		t.Errorf("told %v", told)
	}
	storetest.Fails(t, d.db.Commit(t.Context(), writes...), "", "a second use of one code")
	for range d.Recovery.Attempts {
		_, err = d.Redeem(t.Context(), d.who, d.recovery(0))
		storetest.Wants(t, err, fault.RecoveryCodeInvalid)
	}
	_, err = d.Redeem(t.Context(), d.who, d.recovery(1))
	storetest.Wants(t, err, fault.RateLimited)
	d.who.UserID = "01JD3X4Q7V0S8D4T2M6B9N1ZKA"
	_, err = d.Redeem(t.Context(), d.who, "abcde-fgh27")
	storetest.Wants(t, err, fault.RecoveryCodeInvalid)
}

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
		storetest.Is(t, do(), nil, name)
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
