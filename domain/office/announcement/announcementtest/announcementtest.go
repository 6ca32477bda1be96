// Package announcementtest is the test suite of the contract announcement.Store.
package announcementtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/announcement"
)

// Run checks an implementation of announcement.Store.
func Run(t *testing.T, open storetest.Open[announcement.Store]) {
	storetest.Run(t, open, storetest.Cases[announcement.Store]{
		"RoundTrip":  roundTrip,
		"Order":      order,
		"UniqueSlug": uniqueSlug,
		"Slugs":      slugs,
		"Change":     change,
		"Remove":     remove,
		"Named":      named,
	})
}

func sample(slug string) announcement.Announcement {
	return announcement.Announcement{Slug: slug, Title: "t ?'", Message: "m", StartAt: time.UnixMilli(5).UTC(),
		EndAt: time.UnixMilli(7).UTC()}
}

// whole has a value in every field.
func whole(slug string) announcement.Announcement {
	a := sample(slug)
	a.HTML, a.Policy, a.Active, a.Priority, a.OrderNo = new("<p>"), "1", true, -4, new(int64(3))
	a.Titles, a.Messages = announcement.Texts{"tr": "t"}, announcement.Texts{"ar": "م"}
	a.HTMLs, a.Route = announcement.Texts{"en": "<b>"}, json.RawMessage(`{"a":[1.50]}`)
	a.Routes = announcement.Routes{"tr": json.RawMessage(`{"b":1e30}`)}
	a.Expanded, a.Pinned, a.Slider, a.SliderName = new(false), new(true), new(true), "s"
	a.Type, a.ClientType, a.Pictures = new(int64(0)), new("web"), [...]string{"a", "i", "w"}
	a.CreatedBy, a.UpdatedBy = "u1", "u2"
	return a
}

func add(t *testing.T, s announcement.Store, a announcement.Announcement) announcement.Announcement {
	t.Helper()
	var err error
	a.ID, err = s.Add(t.Context(), a)
	storetest.Must(t, err)
	return a
}

func list(t *testing.T, s announcement.Store, q announcement.Query) []announcement.Announcement {
	t.Helper()
	all, err := s.List(t.Context(), q)
	storetest.Must(t, err)
	return all
}

func roundTrip(t *testing.T, s announcement.Store, _ commit.Committer) {
	b, a := add(t, s, sample("b")), add(t, s, whole("a"))
	both := []announcement.Announcement{a, b}
	for _, c := range []struct {
		q    announcement.Query
		want []announcement.Announcement
	}{
		{announcement.Query{}, both},
		{announcement.Query{ID: &b.ID}, both[1:]},
		{announcement.Query{Slug: new("a")}, both[:1]},
		{announcement.Query{Active: new(false)}, both[1:]},
		{announcement.Query{Active: new(true), ID: &b.ID}, []announcement.Announcement{}},
	} {
		storetest.Same(t, list(t, s, c.q), c.want)
	}
}

func order(t *testing.T, s announcement.Store, _ commit.Committer) {
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
		a := sample(fmt.Sprint("s", i))
		a.Pinned, a.Priority, a.OrderNo, a.StartAt = c.pinned, c.priority, c.orderNo, time.UnixMilli(c.startMs)
		add(t, s, a)
	}
	var got []string
	for _, a := range list(t, s, announcement.Query{}) {
		got = append(got, a.Slug)
	}
	storetest.Same(t, strings.Join(got, " "), "s6 s3 s1 s4 s2 s5 s0 s7")
}

func uniqueSlug(t *testing.T, s announcement.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(int) error {
		_, err := s.Add(t.Context(), sample("same"))
		return err
	})
	if won != 1 {
		t.Errorf("%d of 8 were added", won)
	}
}

func slugs(t *testing.T, s announcement.Store, _ commit.Committer) {
	for _, slug := range []string{"a", "a-2", "a-b", "ab", "b-a", "a1", "أ-2"} {
		add(t, s, sample(slug))
	}
	for base, want := range map[string][]string{"a": {"a", "a-2", "a-b"}, "ab": {"ab"}, "أ": {"أ-2"},
		"b": {"b-a"}, "c": nil} {
		got, err := s.Slugs(t.Context(), base)
		storetest.Must(t, err)
		slices.Sort(got)
		storetest.Same(t, append([]string(nil), got...), want)
	}
}

func change(t *testing.T, s announcement.Store, _ commit.Committer) {
	a, b := add(t, s, sample("a")), add(t, s, sample("b"))
	next := whole("other")
	storetest.Must(t, s.Change(t.Context(), a.ID, func(got announcement.Announcement) (announcement.Announcement, error) {
		storetest.Same(t, got, a)
		return next, nil
	}))
	next.ID, next.Slug, next.CreatedBy = a.ID, a.Slug, a.CreatedBy
	storetest.Same(t, list(t, s, announcement.Query{}), []announcement.Announcement{next, b})
	storetest.Must(t, s.Change(t.Context(), a.ID, func(announcement.Announcement) (announcement.Announcement, error) {
		return a, nil // every field can be cleared
	}))
	storetest.Same(t, list(t, s, announcement.Query{ID: &a.ID}), []announcement.Announcement{a})
	storetest.Wants(t, s.Change(t.Context(), b.ID+1, nil), fault.RecordNotFound)
}

func remove(t *testing.T, s announcement.Store, _ commit.Committer) {
	a, b := add(t, s, sample("a")), add(t, s, sample("b"))
	storetest.Must(t, s.Remove(t.Context(), a.ID))
	storetest.Wants(t, s.Remove(t.Context(), a.ID), fault.RecordNotFound)
	storetest.Same(t, list(t, s, announcement.Query{}), []announcement.Announcement{b})
}

func named(t *testing.T, s announcement.Store, _ commit.Committer) {
	add(t, s, sample("none"))
	add(t, s, whole("a"))
	got, err := s.ReferencedKeys(t.Context(), []string{"w", "x", "i", "a?'"})
	storetest.Must(t, err)
	slices.Sort(got)
	storetest.Same(t, got, []string{"i", "w"})
}
