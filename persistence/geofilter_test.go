package persistence

import (
	"testing"

	"castellan/domain/access/allowedip"
	"castellan/domain/access/allowedip/allowediptest"
	"castellan/domain/access/geofilter/geofiltertest"
)

func TestGeofilterStore(t *testing.T) {
	suite(t, geofiltertest.Run, func(db *DB) geofiltertest.Stores {
		return geofiltertest.Stores{Store: NewGeofilters(db), Users: NewUsers(db), Outbox: NewOutbox(db)}
	}, "users", "geofilter_country", "outbox")
}

func TestAllowedIPStore(t *testing.T) {
	suite(t, allowediptest.Run, func(db *DB) allowedip.Store { return NewAllowedIPs(db) })
}
