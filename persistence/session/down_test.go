package session_test

import (
	"testing"

	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil, session.NewAllowedIPs(db), session.NewGeofilters(db), session.NewProfiles(db),
		session.NewResetTokens(db), session.NewSessions(db))
}
