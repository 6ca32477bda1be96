package delivery

// What the tests of this package see of its inside.
type (
	NotificationRow = notificationRow
)

var (
	NotificationFilters = notificationFilters
	NotificationOrder   = notificationOrder
	NotificationsTable  = notifications
)
