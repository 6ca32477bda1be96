package kit_test

import (
	"testing"

	"castellan/domain/kit/integration"
	"castellan/domain/kit/integration/integrationtest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestIntegrationStore(t *testing.T) {
	persistencetest.RunBoth(t, integrationtest.Run,
		func(db *persistence.DB) integration.Store { return kit.NewIntegration(db) },
		"integration_claim", "integration_event")
}
