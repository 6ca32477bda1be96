package persistence

import (
	"testing"

	"castellan/domain/kit/integration"
	"castellan/domain/kit/integration/integrationtest"
)

func TestIntegrationStore(t *testing.T) {
	suite(t, integrationtest.Run, func(db *DB) integration.Store { return NewIntegration(db) },
		"integration_claim", "integration_event")
}
