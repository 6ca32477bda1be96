package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
)

type Notifications struct{ db *DB }

var _ notification.Store = Notifications{}

// NewNotifications returns the notifications kept in db.
func NewNotifications(db *DB) Notifications { return Notifications{db} }

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

var notificationWrites = []engine.Kind{
	engine.Insert(func(w notification.Add) notificationRow {
		return notificationRow{ID: w.ID, UserID: w.UserID, Topic: w.Topic, Title: w.Title, Body: w.Body,
			ImageURL: w.ImageURL, ClickAction: w.ClickAction, CreatedAt: ms(w.CreatedAt), ReadAt: ms(w.ReadAt)}
	}),
}

var notifications = table[notificationRow, notification.Notification]{
	order: keyset{columns: "id", descending: true},
	record: func(r notificationRow) (notification.Notification, error) {
		return notification.Notification{ID: r.ID, UserID: r.UserID, CreatedAt: at(r.CreatedAt), ReadAt: at(r.ReadAt),
			Message: notification.Message{Topic: r.Topic, Title: r.Title, Body: r.Body, ImageURL: r.ImageURL,
				ClickAction: r.ClickAction}}, nil
	},
}

func notificationFilters(q notification.Query) []filter {
	fs := []filter{is("user_id", q.UserID)}
	if q.Unread {
		fs = append(fs, where("read_at = 0"))
	}
	return fs
}

func notificationOrder(p notification.Place) []any { return []any{p.ID} }

func (s Notifications) List(ctx context.Context, q notification.Query,
	p page.Query[notification.Place]) (page.Of[notification.Notification], error) {
	return listPage(ctx, s.db, notifications, p, notificationOrder, notificationFilters(q))
}

func (s Notifications) Read(ctx context.Context, userID string, ids []string) (n int, err error) {
	if ids != nil && len(ids) == 0 {
		return 0, nil
	}
	fs := append(notificationFilters(notification.Query{UserID: userID, Unread: true}), among("id", ids))
	err = write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		set := tx.NewUpdate().Table("notification").Set("read_at = ?", ms(s.db.Now()))
		result, err := filtered(set, fs).Exec(ctx)
		if err != nil {
			return err
		}
		changed, err := result.RowsAffected()
		n = int(changed)
		return err
	})
	return n, err
}
