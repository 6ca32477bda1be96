package allowedip_test

import (
	"testing"

	"castellan/domain/access/allowedip"
	"castellan/domain/access/allowedip/allowediptest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	allowediptest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) allowedip.Store { return access.NewAllowedIPs(db) }))
}
