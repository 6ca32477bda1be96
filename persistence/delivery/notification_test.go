package delivery_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/page/pagetest"
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

var notificationStart = time.UnixMilli(1_700_000_000_000).UTC()

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

func notificationPages(t *testing.T, s notification.Store, c commit.Committer) {
	mine := addNotifications(t, c, "u1", 5)
	addNotifications(t, c, "u2", 2)
	slices.Reverse(mine)
	pagetest.Check(t, s.List, notification.Query{UserID: "u1"}, mine)
	whole := persistencetest.Whole(t, func(n *notification.Notification) { n.UserID = "u3" })
	storetest.Must(t, c.Commit(t.Context(), notification.Add{Notification: whole}))
	pagetest.Check(t, s.List, notification.Query{UserID: "u3"}, []notification.Notification{whole})
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
	pagetest.Check(t, s.List, notification.Query{UserID: "u1", Unread: true}, nil)
	pagetest.Check(t, s.List, notification.Query{UserID: "u2", Unread: true}, other)
	var once atomic.Int64
	addNotifications(t, c, "u3", 1)
	storetest.Race(t, 6, "", func(int) error {
		n, err := s.Read(t.Context(), "u3", nil)
		once.Add(int64(n))
		return err
	})
	storetest.Equal(t, once.Load(), 1)
}
