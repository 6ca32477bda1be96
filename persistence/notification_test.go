package persistence

import (
	"testing"

	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/notification/notificationtest"
)

func TestNotificationStore(t *testing.T) {
	suite(t, notificationtest.Run, func(db *DB) notification.Store { return NewNotifications(db) }, "notification")
}
