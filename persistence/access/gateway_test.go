package access_test

import (
	"testing"

	"castellan/domain/access/gateway"
	"castellan/domain/access/gateway/gatewaytest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

func TestGatewayStore(t *testing.T) {
	persistencetest.RunBoth(t, gatewaytest.Run,
		func(db *persistence.DB) gateway.Store { return access.NewGateways(db) }, "guard_route", "guard_grant")
}
