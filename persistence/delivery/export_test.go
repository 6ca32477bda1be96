package delivery

// This file exports internals to the tests of the package.
type (
	NotificationRow = notificationRow
)

var (
	NotificationFilters = notificationFilters
	NotificationOrder   = notificationOrder
	NotificationsTable  = notifications
)
