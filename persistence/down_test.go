package persistence_test

import (
	"testing"

	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
	"castellan/persistence/guard"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
	"castellan/persistence/session"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, account.NewHashKinds(db), account.NewPasswordGuards(db), account.NewUsers(db),
		factor.NewChallenges(db), factor.NewMFA(db), factor.NewPasskeys(db), factor.NewRemembered(db),
		gate.NewErrands(db), gate.NewGateways(db), guard.NewFirewall(db), permit.NewCronKeys(db), permit.NewResources(db),
		permit.NewServiceKeys(db), proof.NewDevices(db), proof.NewTOTP(db), proof.NewUserLinks(db),
		session.NewAllowedIPs(db), session.NewGeofilters(db), session.NewProfiles(db), session.NewResetTokens(db),
		session.NewSessions(db))
}
