package delivery

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Notifications struct{ db *engine.DB }

func NewNotifications(db *engine.DB) notification.Store { return Notifications{db} }

type notificationRow struct {
	bun.BaseModel `bun:"table:notification,alias:n"`

	ID          string `bun:",pk"`
	UserID      string
	Topic       string
	Title       string
	Body        string
	ImageURL    string
	ClickAction string
	CreatedAt   int64
	ReadAt      int64
}

var NotificationWrites = []engine.Kind{
	engine.Insert(func(w notification.Add) notificationRow { return notifications.Row(w.Notification) }),
}

var notifications = record.Of(record.Table[notificationRow, notification.Notification]{
	Order: record.Keyset{Columns: "id", Descending: true},
}, nil)

func notificationFilters(q notification.Query) []record.Filter {
	fs := []record.Filter{record.Is("user_id", q.UserID)}
	if q.Unread {
		fs = append(fs, record.Where("read_at = 0"))
	}
	return fs
}

func (s Notifications) List(ctx context.Context, q notification.Query,
	p page.Query[notification.Place]) (page.Of[notification.Notification], error) {
	return record.ListPage(ctx, s.db, notifications, p, record.ByID, notificationFilters(q))
}

func (s Notifications) Read(ctx context.Context, userID string, ids []string) (n int, err error) {
	if ids != nil && len(ids) == 0 {
		return 0, nil
	}
	fs := append(notificationFilters(notification.Query{UserID: userID, Unread: true}), record.Among("id", ids))
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		set := tx.NewUpdate().Table("notification").Set("read_at = ?", engine.Millis(s.db.Now()))
		result, err := record.Filtered(set, fs).Exec(ctx)
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		n = int(changed)
		return err
	})
	return n, err
}
