package persistence

import (
	"testing"

	"castellan/domain/audit"
	"castellan/domain/audit/audittest"
)

func TestAuditStore(t *testing.T) {
	suite(t, audittest.Run, func(db *DB) audit.Store { return NewAudit(db) })
}
