package provider_test

import (
	"testing"

	"castellan/domain/money/provider"
	"castellan/domain/money/provider/providertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	providertest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) provider.Store { return money.NewProviders(db) }))
}
