package geo

import (
	"net/netip"
	"slices"
	"testing"
)

func TestFilter(t *testing.T) {
	f := NewFilter("TR", "DE", "TR")
	if f != "DE,TR" || !slices.Equal(f.Codes(), []string{"DE", "TR"}) {
		t.Errorf("%q, %v", f, f.Codes())
	}
	for code, want := range map[string]bool{"DE": true, "TR": true, "NL": false, "ET": false, "": false, "D": false,
		"E,": false, "tr": false, "DE,TR": false} {
		if f.Has(code) != want {
			t.Errorf("%q: %v", code, !want)
		}
	}
	for _, c := range []struct{ got, want Filter }{
		{f.With("NL"), "DE,NL,TR"}, {f.With("DE"), f}, {f.Without("DE"), "TR"}, {f.Without("NL"),
			f}, {Filter("TR").Without("TR"), ""}, {Filter("").With("TR"), "TR"}, {Filter("").Without("TR"), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if Filter("").Codes() != nil || Filter("").Has("TR") {
		t.Error("an empty filter names a country")
	}
}

// D-GEO-01 and the accepted countries (section 4.21 of the interface).
func TestAdmits(t *testing.T) {
	closed, open := Policy{}, Policy{AllowPrivate: true, AllowUnknown: true}
	private := Policy{AllowPrivate: true}
	for _, c := range []struct {
		p       Policy
		f       Filter
		country string
		from    string
		want    bool
	}{
		{closed, "", "US", "8.8.8.8", true},
		{closed, "", "", "8.8.8.8", true},
		{closed, "", "", "10.0.0.1", true},
		{closed, "TR", "TR", "8.8.8.8", true},
		{closed, "DE,TR", "TR", "8.8.8.8", true},
		{open, "TR", "US", "8.8.8.8", false},
		{open, "TR", "US", "127.0.0.1", false}, // a trusted proxy reports the country of the client
		{closed, "TR", "TR", "10.0.0.1", true},
		{closed, "TR", "", "127.0.0.1", false},
		{closed, "TR", "", "10.0.0.1", false},
		{closed, "TR", "", "8.8.8.8", false},
		{private, "TR", "", "127.0.0.1", true},
		{private, "TR", "", "::1", true},
		{private, "TR", "", "192.168.1.9", true},
		{private, "TR", "", "fd00::1", true},
		{private, "TR", "", "fe80::1", true},
		{private, "TR", "", "8.8.8.8", false},
		{private, "TR", "", "2001:db8::1", false},
		{open, "TR", "", "8.8.8.8", true},
		{Policy{AllowUnknown: true}, "TR", "", "10.0.0.1", false},
	} {
		if got := c.p.Admits(c.f, c.country, netip.MustParseAddr(c.from)); got != c.want {
			t.Errorf("%+v %q from %s in %q: %v", c.p, c.f, c.from, c.country, got)
		}
	}
	if private.Admits("TR", "", netip.Addr{}) {
		t.Error("no address passes")
	}
}
