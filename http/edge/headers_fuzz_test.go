package edge

import (
	"strings"
	"testing"
	"unicode/utf8"

	"castellan/domain/kit/geo"
)

// FuzzHeaders: the stored User-Agent and device names are valid UTF-8 within their bounds and a part of the sent
// text. A country is a known code or empty.
func FuzzHeaders(f *testing.F) {
	f.Add("Mozilla/5.0 (X11; Linux)", "TR")
	f.Add(strings.Repeat("ş", maxUserAgent), "tr")
	f.Add("\xff\xfe"+strings.Repeat("\xf0\x9d\x92\xb3", maxUserAgent/4), "ZZ")
	f.Fuzz(func(t *testing.T, agent, from string) {
		var a arena
		a.grow(maxUserAgent)
		got := a.text([]byte(agent), maxUserAgent)
		if !utf8.ValidString(got) || len(got) > maxUserAgent {
			t.Fatalf("%q is kept as %q", agent, got)
		}
		if utf8.ValidString(agent) && len(agent) <= maxUserAgent && got != agent {
			t.Fatalf("%q is kept as %q", agent, got)
		}
		if c := country(from); c != "" && (c != from || !geo.Assigned(c)) {
			t.Fatalf("%q is the country %q", from, c)
		}
	})
}
