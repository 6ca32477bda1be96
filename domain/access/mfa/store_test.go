package mfa_test

import (
	"testing"

	"castellan/domain/access/mfa"
	"castellan/domain/access/mfa/mfatest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	mfatest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) mfa.Store { return access.NewMFA(db) }, "mfa_method", "mfa_action",
		"mfa_policy"))
}
