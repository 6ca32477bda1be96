package device_test

import (
	"testing"

	"castellan/domain/access/device/devicetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	devicetest.Run(t, persistencetest.Suite(func(db *persistence.DB) devicetest.Stores {
		return devicetest.Stores{Store: access.NewDevices(db), Users: access.NewUsers(db)}
	}))
}
