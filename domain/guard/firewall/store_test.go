package firewall_test

import (
	"testing"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/firewall/firewalltest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	firewalltest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) firewall.Store { return guard.NewFirewall(db) }, "firewall_rule"))
}
