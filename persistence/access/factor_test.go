package access_test

import (
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// A row of wrong values outlives every window (D-2FA-13). That of a decoy does not, or
// strangers could fill the table.
func TestRowsOfWrongValuesStay(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store := t.Context(), access.NewChallenges(db)
		user, spent, decoy := id.New(time.Now()), id.New(time.Now()), challenge.DecoyMark+id.New(time.Now())[1:]
		for _, b := range []challenge.Budget{{Subject: user, OTPRow: 3}, {Subject: spent, OTP: []int64{1}},
			{Subject: decoy, OTPRow: 3}} {
			b.Flow = challenge.FlowReset
			storetest.Must(t, db.Commit(ctx, challenge.Spend{Budget: b}))
		}
		storetest.Must(t, store.Purge(ctx, time.Now().Add(48*time.Hour)))
		for subject, stays := range map[string]bool{user: true, spent: false, decoy: false} {
			b, err := store.Budget(ctx, subject, challenge.FlowReset)
			if storetest.Must(t, err); (b.Version > 0) != stays || stays && b.OTPRow != 3 {
				t.Errorf("%s: %+v, want it to stay: %v", subject, b, stays)
			}
		}
	})
}

// Switching the factors of one account ends its rows and leaves those of other accounts. A verdict that was made
// before is fenced out.
func TestSwitchOffAndOn(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, users := t.Context(), access.NewChallenges(db), access.NewUsers(db)
		one, two := usertest.Sample(1), usertest.Sample(2)
		storetest.Must(t, db.Commit(ctx, one, two))
		login := challenge.FactorOf(challenge.FlowLogin, challenge.SMS)
		for _, u := range []string{one.ID, two.ID} {
			storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: u, Factor: login},
				challenge.Spend{Budget: challenge.Budget{Subject: u, Flow: challenge.FlowLogin, OTPRow: 100, TOTPRow: 2}}))
		}
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: one.ID,
			Factor: challenge.FactorOf(challenge.FlowSession, challenge.TOTP)}))
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOff{UserID: challenge.DecoyMark, Factor: login})) // unknown
		u, err := users.Get(ctx, one.ID)
		if storetest.Must(t, err); u.FactorsOff != login|challenge.FactorOf(challenge.FlowSession, challenge.TOTP) ||
			u.CV != one.CV || u.Account().Off != u.FactorsOff {
			t.Errorf("off %b, cv %d", u.FactorsOff, u.CV)
		}
		storetest.Must(t, db.Commit(ctx, challenge.SwitchOn{UserID: one.ID}))
		for id, want := range map[string]int{one.ID: 0, two.ID: 100} {
			u, err := users.Get(ctx, id)
			storetest.Must(t, err)
			b, err := store.Budget(ctx, id, challenge.FlowLogin)
			storetest.Must(t, err)
			if b.OTPRow != want || (u.FactorsOff != 0) != (want > 0) || (b.Version == 1) != (want > 0) {
				t.Errorf("%s: off %b, %+v", id, u.FactorsOff, b)
			}
		}
	})
}
