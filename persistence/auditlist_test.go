package persistence

import (
	"testing"

	"castellan/domain/audit/audittest"
)

func TestAuditStore(t *testing.T) {
	both(t, func(t *testing.T, db *DB) { audittest.TestStore(t, NewAudit(db), db) })
}
