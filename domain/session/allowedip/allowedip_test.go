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

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "192.0.2.7/24": "192.0.2.0/24", "0.0.0.0/0": "0.0.0.0/0",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7/120": "192.0.2.0/24",
		"2001:DB8::1": "2001:db8::1/128", "2001:db8:1:2:3::/48": "2001:db8:1::/48",
		"": "", "localhost": "", "192.0.2": "", "192.0.2.7/33": "", "192.0.2.07": "", "fe80::1%eth0": "",
		"fe80::%eth0/64": "", "::ffff:0.0.0.0/90": "", "192.0.2.7/": "", " 192.0.2.7": "", "192.0.2.7:80": "",
	} {
		got, err := Parse(in)
		if text := got.String(); err == nil && text != want || (err != nil) != (want == "") {
			t.Errorf("%q: %v, %v, want %q", in, got, err, want)
		}
	}
}

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
	storetest.Is(t, c.Reload(t.Context()), errDown)
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

// FuzzParse: an accepted network has no host bits, no zone and no second form.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"192.0.2.7", "192.0.2.0/24", "::ffff:192.0.2.0/120", "::ffff:0:0/90", "fe80::1%eth0",
		"::/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p || p.Masked() != p || p.Addr().Is4In6() || p.Addr().Zone() != "" {
			t.Fatalf("%q: %s and %s, %v", s, p, again, err)
		}
	})
}
