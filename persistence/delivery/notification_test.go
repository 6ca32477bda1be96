package delivery_test

import (
	"testing"

	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/notification/notificationtest"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

func TestNotificationStore(t *testing.T) {
	persistencetest.RunBoth(t, notificationtest.Run,
		func(db *persistence.DB) notification.Store { return delivery.NewNotifications(db) }, "notification")
}
