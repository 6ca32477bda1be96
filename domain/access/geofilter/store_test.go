package geofilter_test

import (
	"testing"

	"castellan/domain/access/geofilter/geofiltertest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	geofiltertest.Run(t, persistencetest.Suite(func(db *persistence.DB) geofiltertest.Stores {
		return geofiltertest.Stores{Store: access.NewGeofilters(db), Users: access.NewUsers(db),
			Outbox: delivery.NewOutbox(db)}
	}))
}
