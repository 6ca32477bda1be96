package auth_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// An endpoint that needs a code refuses a call without one, and that of an account without an authenticator.
func TestCodeIsVerified(t *testing.T) {
	db := persistencetest.SQLite(t)
	verify := auth.Verify(&totp.Service{Store: proof.NewTOTP(db), Commit: db, Ring: keyringtest.Ring(t, time.Now),
		Now: time.Now})
	for _, who := range []rest.Caller{{UserID: "u1"}, {UserID: "u1", OTP: "123456"}, {OTP: "123456"}} {
		storetest.Wants(t, verify(t.Context(), who, nil, nil), fault.OTPRequired)
	}
	persistencetest.Exec(t, db, "DROP TABLE totp")
	err := verify(t.Context(), rest.Caller{UserID: "u1", OTP: "123456"}, nil, nil)
	if f := (*fault.Error)(nil); err == nil || errors.As(err, &f) && f.Code == fault.OTPRequired {
		t.Error(err)
	}
}
