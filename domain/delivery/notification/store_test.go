package notification_test

import (
	"testing"

	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/notification/notificationtest"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// The contract holds on SQLite; package persistence runs it on both databases.
func TestStore(t *testing.T) {
	notificationtest.Run(t, persistencetest.Suite(
		func(db *persistence.DB) notification.Store { return delivery.NewNotifications(db) }))
}
