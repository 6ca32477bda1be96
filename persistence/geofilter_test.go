package persistence

import (
	"testing"

	"castellan/domain/allowedip"
	"castellan/domain/allowedip/allowediptest"
	"castellan/domain/geofilter/geofiltertest"
	"castellan/persistence/delivery"
)

func TestGeofilterStore(t *testing.T) {
	suite(t, geofiltertest.Run, func(db *DB) geofiltertest.Stores {
		return geofiltertest.Stores{Store: NewGeofilters(db), Users: NewUsers(db), Outbox: delivery.NewOutbox(db)}
	}, "users", "geofilter_country", "outbox")
}

func TestAllowedIPStore(t *testing.T) {
	suite(t, allowediptest.Run, func(db *DB) allowedip.Store { return NewAllowedIPs(db) })
}
