package access_test

import (
	"testing"

	"castellan/domain/access/allowedip"
	"castellan/domain/access/allowedip/allowediptest"
	"castellan/domain/access/geofilter/geofiltertest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

func TestGeofilterStore(t *testing.T) {
	persistencetest.RunBoth(t, geofiltertest.Run, func(db *persistence.DB) geofiltertest.Stores {
		return geofiltertest.Stores{Store: access.NewGeofilters(db), Users: access.NewUsers(db),
			Outbox: delivery.NewOutbox(db)}
	}, "users", "geofilter_country", "outbox")
}

func TestAllowedIPStore(t *testing.T) {
	persistencetest.RunBoth(t, allowediptest.Run,
		func(db *persistence.DB) allowedip.Store { return access.NewAllowedIPs(db) })
}
