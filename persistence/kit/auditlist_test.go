package kit_test

import (
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/audit/audittest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestAuditStore(t *testing.T) {
	persistencetest.RunBoth(t, audittest.Run, func(db *persistence.DB) audit.Store { return kit.NewAudit(db) })
}
