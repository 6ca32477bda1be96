package gateway

import (
	"testing"

	"castellan/domain/kit/storetest"
)

// A route covers a more specific rule only if both admit a session, or if they are the same route but for the case.
func TestRouteCoversRule(t *testing.T) {
	of := func(mode Mode, method, host, path string) Route {
		return Route{Mode: mode, Method: method, Host: host, Path: path}
	}
	specific := of(Session, "GET", "h", "/A")
	for name, c := range map[string]struct {
		by   *Route
		rule Route
		want bool
	}{
		"no route":       {nil, specific, false},
		"both a session": {new(of(Session, "POST", "x", "/y")), specific, true},
		"only the rule":  {new(of(Guarded, "POST", "x", "/y")), specific, false},
		"only the route": {new(of(Session, "POST", "x", "/y")), of(Guarded, "GET", "h", "/A"), false},
		"another case":   {new(of(Guarded, "GET", "h", "/a")), of(Guarded, "GET", "h", "/A"), true},
		"another method": {new(of(Guarded, "PUT", "h", "/a")), of(Guarded, "GET", "h", "/A"), false},
		"another host":   {new(of(Guarded, "GET", "g", "/a")), of(Guarded, "GET", "h", "/A"), false},
		"another path":   {new(of(Guarded, "GET", "h", "/b")), of(Guarded, "GET", "h", "/A"), false},
	} {
		r := rule{Route: c.rule}
		storetest.Equal(t, r.covered(c.by), c.want, name)
	}
}

// A host that servers may read in different ways is none.
func TestOneHost(t *testing.T) {
	for host, want := range map[string]bool{"": true, "a.example-1_z": true, "09": true, "[::1]": true, ".a": false,
		"a.": false, "a..b": false, "a:1": false, "A": false, "a/b": false, "{": false, "`": false, "[192.0.2.1]": false,
		"[x]": false} {
		storetest.Equal(t, oneHost(host), want, host)
	}
}

// A format has one to eight letters and digits, a letter first. A short name of Windows has two to six characters
// before the tilde and a number behind it.
func TestEndsOfNames(t *testing.T) {
	for format, want := range map[string]bool{"json": true, "a": true, "a1234567": true, "a12345678": false, "": false,
		"1a": false, "a-b": false, "aé": false} {
		if isFormat(format) != want {
			t.Errorf("%q is a format: %t", format, !want)
		}
	}
	for name, want := range map[[3]string]bool{{"wi", "1", "withdrawals"}: true, {"w", "1", "withdrawals"}: false,
		{"withdr", "12", "withdrawals"}: true, {"withdra", "1", "withdrawals"}: false, {"wi", "1", "wit"}: true,
		{"wi", "1", "wi"}: false, {"wi", "", "wit"}: false, {"wi", "1x", "wit"}: false, {"wi", "1.jso", "wit"}: true,
		{"wi09af", "1", "withdrawals"}: true, {"wi09ag", "1", "withdrawals"}: false, {"xi09af", "1", "withdrawals"}: false,
		{"wi09a", "1", "withdrawals"}: false, {"pay", "1", "p a.y"}: true} {
		if isShort(name[0], name[1], name[2]) != want {
			t.Errorf("%q is short: %t", name, !want)
		}
	}
	for name, want := range map[string]string{"a.b": "b", ".b": "", "a.b.c": "c", "a": "", "a.": ""} {
		if _, format, found := cutFormat(name); format != want || found != (name != ".b" && name != "a") {
			t.Errorf("%q: %q, %t", name, format, found)
		}
	}
}
