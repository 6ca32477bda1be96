package resource_test

import (
	"testing"

	"castellan/domain/access/resource"
	"castellan/domain/access/resource/resourcetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	resourcetest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) resource.Store { return access.NewResources(db) }, "users", "user_role",
		"password_guard", "session", "login_history", "role", "resource_type", "resource",
		"role_resource_permission", "role_resource_permission_log"))
}
