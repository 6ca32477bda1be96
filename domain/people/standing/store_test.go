package standing_test

import (
	"testing"

	"castellan/domain/people/standing"
	"castellan/domain/people/standing/standingtest"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	standingtest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) standing.Store { return people.NewStandings(db) }))
}
