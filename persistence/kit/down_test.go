package kit_test

import (
	"testing"

	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, []string{"Audit.MayRemove"}, // of PostgreSQL
		kit.NewAudit(db), kit.NewChanges(db), kit.NewIdempotency(db), kit.NewIntegration(db), kit.NewJobs(db),
		kit.NewKeys(db), kit.NewParameters(db))
}
