package persistence

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/notification"
	"castellan/domain/page"
	"castellan/persistence/record"
)

// A page of a list that grows without end is found by an index that has the order
// of the list, with a position and without: the last page costs what the first
// one does.
func TestPagesOfDeliveryAreFoundByIndex(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		told := func(q notification.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[notification.Place]{After: &notification.Place{ID: "9"}, Limit: 10}, notificationOrder,
				notificationFilters(q))
			return notifications.Selected(db.Conn(t.Context()).NewSelect().Model((*notificationRow)(nil)), p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"notifications": {told(notification.Query{UserID: "u"}), "notification_user"},
			"unread ones":   {told(notification.Query{UserID: "u", Unread: true}), "notification_unread"},
		} {
			wantsIndex(t, db, name, c.query, c.index)
		}
	})
}
