package delivery_test

import (
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

func TestNotificationStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) notification.Store { return delivery.NewNotifications(db) },
		storetest.Cases[notification.Store]{
			"Pages": notificationPages,
			"Read":  notificationRead,
		}, "notification")
}

var notificationStart = time.UnixMilli(1_700_000_000_000)

// addNotifications gives a user n notifications, the oldest first.
func addNotifications(t *testing.T, c commit.Committer, user string, n int) (all []notification.Notification) {
	t.Helper()
	for i := range n {
		one := notification.New(notificationStart.Add(time.Duration(i)*time.Second), user,
			persistencetest.Whole[notification.Message](t))
		storetest.Must(t, c.Commit(t.Context(), notification.Add{Notification: one}))
		all = append(all, one)
	}
	return all
}

func listNotifications(t *testing.T, s notification.Store, q notification.Query,
	p page.Query[notification.Place]) page.Of[notification.Notification] {
	t.Helper()
	got := storetest.Value(s.List(t.Context(), q, p))(t)
	return got
}

func notificationPages(t *testing.T, s notification.Store, c commit.Committer) {
	mine := addNotifications(t, c, "u1", 5)
	addNotifications(t, c, "u2", 2)
	first := listNotifications(t, s, notification.Query{UserID: "u1"},
		page.Query[notification.Place]{Limit: 3, Count: true})
	if len(first.Records) != 3 || !first.More || first.Total != 5 || first.Records[0].ID != mine[4].ID ||
		!first.Records[0].ReadAt.IsZero() {
		t.Errorf("%+v", first)
	}
	place := first.Records[2].Mark()
	rest := listNotifications(t, s, notification.Query{UserID: "u1"},
		page.Query[notification.Place]{Limit: 3, After: &place})
	if len(rest.Records) != 2 || rest.More || rest.Records[1].ID != mine[0].ID {
		t.Errorf("%+v", rest)
	}
	whole := persistencetest.Whole(t, func(n *notification.Notification) { n.UserID = "u3" })
	storetest.Must(t, c.Commit(t.Context(), notification.Add{Notification: whole}))
	got := listNotifications(t, s, notification.Query{UserID: "u3"}, page.Query[notification.Place]{})
	storetest.Same(t, got.Records, []notification.Notification{whole})
}

func notificationRead(t *testing.T, s notification.Store, c commit.Committer) {
	mine, other := addNotifications(t, c, "u1", 3), addNotifications(t, c, "u2", 1)
	for _, step := range []struct {
		ids  []string
		want int
	}{
		{[]string{}, 0},
		{[]string{mine[0].ID, mine[0].ID, other[0].ID, "nobody's"}, 1},
		{[]string{mine[0].ID}, 0},
		{nil, 2},
		{nil, 0},
	} {
		storetest.Equal(t, storetest.Value(s.Read(t.Context(), "u1", step.ids))(t), step.want, step.ids)
	}
	got1 := listNotifications(t, s, notification.Query{UserID: "u1", Unread: true}, page.Query[notification.Place]{})
	storetest.Equal(t, len(got1.Records), 0, got1)
	got2 := listNotifications(t, s, notification.Query{UserID: "u2", Unread: true}, page.Query[notification.Place]{})
	storetest.Equal(t, len(got2.Records), 1, got2)
	var once atomic.Int64
	addNotifications(t, c, "u3", 1)
	storetest.Race(t, 6, "", func(int) error {
		n, err := s.Read(t.Context(), "u3", nil)
		once.Add(int64(n))
		return err
	})
	storetest.Equal(t, once.Load(), 1)
}
