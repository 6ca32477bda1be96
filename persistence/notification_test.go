package persistence

import (
	"testing"

	"castellan/domain/notification"
	"castellan/domain/notification/notificationtest"
)

func TestNotificationStore(t *testing.T) {
	suite(t, notificationtest.Run, func(db *DB) notification.Store { return NewNotifications(db) }, "notification")
}
