package access_test

import (
	"testing"

	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		access.NewAllowedIPs(db), access.NewChallenges(db), access.NewCronKeys(db), access.NewDevices(db),
		access.NewErrands(db), access.NewGateways(db), access.NewGeofilters(db), access.NewImportedHashes(db),
		access.NewUserLinks(db), access.NewMFA(db), access.NewPasskeys(db), access.NewPasswordGuards(db),
		access.NewResetTokens(db), access.NewProfiles(db), access.NewRemembered(db), access.NewResources(db),
		access.NewServiceKeys(db), access.NewSessions(db), access.NewTOTP(db), access.NewUsers(db))
}
