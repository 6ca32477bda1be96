package totp_test

import (
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

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
	if err := d.db.Commit(t.Context(), writes...); err == nil {
		t.Error("one code was used twice")
	}
	for range totp.DefaultLimit().Attempts {
		_, err = d.Redeem(t.Context(), d.who, d.recovery(0))
		storetest.Wants(t, err, fault.RecoveryCodeInvalid)
	}
	_, err = d.Redeem(t.Context(), d.who, d.recovery(1))
	storetest.Wants(t, err, fault.RateLimited)
	d.who.UserID = "01JD3X4Q7V0S8D4T2M6B9N1ZKA"
	_, err = d.Redeem(t.Context(), d.who, "abcde-fgh27")
	storetest.Wants(t, err, fault.RecoveryCodeInvalid)
}
