package totp_test

import (
	"castellan/persistence/persistencetest"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
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
	after, err := d.store.Get(ctx, d.who.UserID)
	storetest.Must(t, err)
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
	if len(d.told(message.RecoveryUsed)) != 5 {
		t.Errorf("%d notices", len(d.told(message.RecoveryUsed)))
	}
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
