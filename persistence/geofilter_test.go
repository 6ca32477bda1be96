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
			for _, table := range []string{"users", "geofilter_country"} {
				_, err := db.write.NewTruncateTable().TableExpr(table).Exec(t.Context())
				must(t, err)
			}
			return NewGeofilters(db), NewUsers(db), db
		})
	})
}

func TestAllowedIPStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { allowediptest.TestStore(t, NewAllowedIPs(db), db) })
}
