package session_test

import (
	"testing"

	"castellan/domain/access/session"
	"castellan/domain/access/session/sessiontest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	sessiontest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) session.Store { return access.NewSessions(db) }))
}
