package persistence

import (
	"testing"

	"castellan/domain/commit"
	"castellan/domain/device"
	"castellan/domain/device/devicetest"
	"castellan/domain/user"
)

func TestDeviceStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		devicetest.TestStore(t, func(t *testing.T) (device.Store, user.Store, commit.Committer) {
			for _, table := range []string{"users", "device", "device_proof"} {
				_, err := db.write.NewTruncateTable().TableExpr(table).Exec(t.Context())
				must(t, err)
			}
			return NewDevices(db), NewUsers(db), db
		})
	})
}
