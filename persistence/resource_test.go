package persistence

import (
	"testing"

	"castellan/domain/commit"
	"castellan/domain/resource"
	"castellan/domain/resource/resourcetest"
)

func TestResourceStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		resourcetest.TestStore(t, func(t *testing.T) (resource.Store, commit.Committer) {
			for _, table := range []string{"role", "resource_type", "resource", "role_resource_permission", "role_resource_permission_log"} {
				_, err := db.write.NewTruncateTable().TableExpr(table).Exec(t.Context())
				must(t, err)
			}
			return NewResources(emptied(t, db)), db
		})
	})
}
