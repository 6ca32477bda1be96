package office_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func TestAnnouncementStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) announcement.Store { return office.NewAnnouncements(db) },
		storetest.Cases[announcement.Store]{
			"RoundTrip":  announcementRoundTrip,
			"Order":      announcementOrder,
			"UniqueSlug": announcementUniqueSlug,
			"Change":     announcementChange,
		}, "announcement")
}

func plainAnnouncement(slug string) announcement.Announcement {
	return announcement.Announcement{Slug: slug, Title: "t ?'", Message: "m", StartAt: time.UnixMilli(5).UTC(),
		EndAt: time.UnixMilli(7).UTC()}
}

// wholeAnnouncement has a value in every field.
func wholeAnnouncement(t *testing.T, slug string) announcement.Announcement {
	return persistencetest.Whole(t, func(a *announcement.Announcement) {
		a.Slug, a.Expanded, a.Pictures = slug, new(false), [...]string{"a", "i", "w"}
	})
}

func addAnnouncement(t *testing.T, s announcement.Store, a announcement.Announcement) announcement.Announcement {
	t.Helper()
	a.ID = storetest.Value(s.Add(t.Context(), a))(t)
	return a
}

func listAnnouncements(t *testing.T, s announcement.Store, q announcement.Query) []announcement.Announcement {
	t.Helper()
	return storetest.Value(s.List(t.Context(), q))(t)
}

func announcementRoundTrip(t *testing.T, s announcement.Store, _ commit.Committer) {
	b, a := addAnnouncement(t, s, plainAnnouncement("b")), addAnnouncement(t, s, wholeAnnouncement(t, "a"))
	storetest.Same(t, listAnnouncements(t, s, announcement.Query{}), []announcement.Announcement{a, b})
}

func announcementOrder(t *testing.T, s announcement.Store, _ commit.Committer) {
	for i, c := range []struct {
		pinned   *bool
		priority int64
		orderNo  *int64
		startMs  int64
	}{
		{nil, 9, nil, 5}, {new(true), 1, new(int64(2)), 5}, {new(false), 9, new(int64(0)), 5},
		{new(true), 1, new(int64(1)), 5}, {new(true), 1, nil, 9}, {nil, 9, nil, 6}, {new(true), 2, nil, 5},
		{nil, 9, nil, 5},
	} {
		a := plainAnnouncement(fmt.Sprint("s", i))
		a.Pinned, a.Priority, a.OrderNo, a.StartAt = c.pinned, c.priority, c.orderNo, time.UnixMilli(c.startMs)
		addAnnouncement(t, s, a)
	}
	var got []string
	for _, a := range listAnnouncements(t, s, announcement.Query{}) {
		got = append(got, a.Slug)
	}
	storetest.Same(t, strings.Join(got, " "), "s6 s3 s1 s4 s2 s5 s0 s7")
}

func announcementUniqueSlug(t *testing.T, s announcement.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist,
		func(int) error { return storetest.Err(s.Add(t.Context(), plainAnnouncement("same"))) })
}

func announcementChange(t *testing.T, s announcement.Store, _ commit.Committer) {
	a, b := addAnnouncement(t, s, plainAnnouncement("a")), addAnnouncement(t, s, plainAnnouncement("b"))
	next := wholeAnnouncement(t, "other")
	storetest.Must(t, s.Change(t.Context(), a.ID, func(got announcement.Announcement) (announcement.Announcement, error) {
		storetest.Same(t, got, a)
		return next, nil
	}))
	next.ID, next.Slug, next.CreatedBy = a.ID, a.Slug, a.CreatedBy
	storetest.Same(t, listAnnouncements(t, s, announcement.Query{}), []announcement.Announcement{next, b})
	storetest.Must(t, s.Change(t.Context(), a.ID, func(announcement.Announcement) (announcement.Announcement, error) {
		return a, nil // every field can be cleared
	}))
	storetest.Same(t, listAnnouncements(t, s, announcement.Query{ID: &a.ID}), []announcement.Announcement{a})
}
