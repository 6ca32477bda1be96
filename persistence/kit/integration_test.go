package kit_test

import (
	"testing"

	"castellan/domain/integration"
	"castellan/domain/integration/integrationtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestIntegrationStore(t *testing.T) {
	persistencetest.RunBoth(t, integrationtest.Run,
		func(db *persistence.DB) integration.Store { return kit.NewIntegration(db) },
		"integration_claim", "integration_event")
}
