package persistence

import (
	"testing"

	"castellan/domain/allowedip/allowediptest"
	"castellan/domain/commit"
	"castellan/domain/geofilter"
	"castellan/domain/geofilter/geofiltertest"
	"castellan/domain/user"
)

func TestGeofilterStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		geofiltertest.TestStore(t, func(t *testing.T) (geofilter.Store, user.Store, commit.Committer) {
			empty(t, db, "users", "geofilter_country")
			return NewGeofilters(db), NewUsers(db), db
		})
	})
}

func TestAllowedIPStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { allowediptest.TestStore(t, NewAllowedIPs(db), db) })
}
