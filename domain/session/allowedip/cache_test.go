package allowedip

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

var errDown = errors.New("the database is down")

type lists struct {
	all map[string][]netip.Prefix
	err error
}

func (l *lists) Networks(_ context.Context, userID string) ([]netip.Prefix, error) {
	return l.all[userID], l.err
}

func (l *lists) All(context.Context) (map[string][]netip.Prefix, error) { return l.all, l.err }

// A cache reads all lists, and then those that have changed. A failed read changes nothing.
func TestCacheFollowsLists(t *testing.T) {
	here, there := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")
	from, far := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("198.51.100.1")
	s := &lists{all: map[string][]netip.Prefix{"u1": {there, here}}}
	c := NewCache(s)
	if !c.Allows("u1", far) {
		t.Error("an empty cache has a list")
	}
	storetest.Must(t, c.Reload(t.Context()))
	if !c.Allows("u1", from) || c.Allows("u1", far) || c.Allows("u1", netip.Addr{}) || !c.Allows("u2", far) {
		t.Error("the lists are not those of the store")
	}
	s.all = map[string][]netip.Prefix{"u2": {here}, "u3": {there}}
	storetest.Must(t, c.Follow(t.Context(), "u1", "u2"))
	if !c.Allows("u1", far) || c.Allows("u2", far) || !c.Allows("u3", far) { // no note named u3
		t.Error("the changes were not followed")
	}
	s.err = errDown
	if err := c.Reload(t.Context()); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if err := c.Follow(t.Context(), "u3"); !errors.Is(err, errDown) || !c.Allows("u3", far) {
		t.Error(err)
	}
}

// A change of a list adds and removes only what differs.
func TestChangeOfList(t *testing.T) {
	at := time.UnixMilli(1)
	a, b, c := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("::/0")
	storetest.Same(t, Change("u1", []netip.Prefix{a, b}, []netip.Prefix{b, c}, at),
		[]commit.Write{Disallow{UserID: "u1", Network: a}, Allow{UserID: "u1", Network: c, At: at}})
	if got := Change("u1", []netip.Prefix{a, b}, []netip.Prefix{b, a}, at); got != nil {
		t.Error(got)
	}
}
