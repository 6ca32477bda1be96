package persistence

import (
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/audit/audittest"
)

func TestAuditStore(t *testing.T) {
	suite(t, audittest.Run, func(db *DB) audit.Store { return NewAudit(db) })
}
