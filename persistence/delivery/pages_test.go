package delivery_test

import (
	"testing"

	"github.com/uptrace/bun"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/page"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A page of an unbounded list is found by an index in the order of the list, with a position and without one. The
// last page costs as much as the first.
func TestPagesOfDeliveryAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		told := func(q notification.Query) *bun.SelectQuery {
			p := record.PartOf(page.Query[notification.Place]{After: &notification.Place{ID: "9"}, Limit: 10},
				delivery.NotificationOrder,
				delivery.NotificationFilters(q))
			return delivery.NotificationsTable.Selected(db.Conn(t.Context()).NewSelect().Model((*delivery.NotificationRow)(nil)),
				p)
		}
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string // of SQLite; PostgreSQL may name the primary key in another way
		}{
			"notifications": {told(notification.Query{UserID: "u"}), "notification_user"},
			"unread ones":   {told(notification.Query{UserID: "u", Unread: true}), "notification_unread"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

// A store whose caller has left answers with an error, and with nothing else.
func TestCallerHasLeft(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Down(t, nil,
		delivery.NewNotifications(db), delivery.NewOutbox(db))
}
