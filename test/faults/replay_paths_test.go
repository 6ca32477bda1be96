package faults

import (
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// unserved fails the test if a target gets past the rule that blocks the place.
func unserved(t *testing.T, p blackbox.Place, targets []string, headers ...string) {
	t.Helper()
	for _, target := range targets {
		if got := p.RawStatus(target, headers...); !slices.Contains([]string{"400", "403", "404", "431"}, got) {
			t.Errorf("%q is answered %s", target, got)
		}
	}
}

// Paths with two readings.
var replaysOfPaths = []replay{
	{"CVE-2021-32637", "Authelia: an unparsable path passed the check of its rule",
		func(t *testing.T, s stage) {
			unserved(t, s.banned(), []string{blackbox.KeysPath + "%", blackbox.KeysPath + "%2", blackbox.KeysPath + "%zz",
				"/.well-known/%6awks.json",
				"/.well-known/jwks.json%00", "/.well-known\\jwks.json", "/.well-known/jwks.json\x7f", "/%2ewell-known/jwks.json"})
			storetest.Equal(t, s.RawStatus(blackbox.KeysPath), "200", "the path itself, from elsewhere")
		}, nil},
	{"CVE-2026-48794", "Authelia: a host with a capital letter bypassed its rule", func(t *testing.T, s stage) {
		p := s.banned()
		for _, host := range []string{"LOCALHOST", "LocalHost", "localhost.", "other.test", "LOCALHOST:80"} {
			p.Ask("GET", blackbox.KeysPath, nil, blackbox.Headers{"Host": host}).Is(t, 403, "ACCESS_DENIED")
			s.Ask("GET", blackbox.KeysPath, nil, blackbox.Headers{"Host": host}).Is(t, 200, "")
		}
		unserved(t, p, []string{"http://LOCALHOST" + blackbox.KeysPath, "HTTP://localhost" + blackbox.KeysPath})
	}, nil},
	{"CVE-2026-15573", "Keycloak: a trailing slash, or ;x=1, bypassed the rules of a path",
		func(t *testing.T, s stage) {
			targets := []string{blackbox.KeysPath + "/", blackbox.KeysPath + "//", blackbox.KeysPath + ";x=1",
				blackbox.KeysPath +
					";", blackbox.KeysPath + "/.",
				blackbox.KeysPath + "/./",
				blackbox.KeysPath + "/;", strings.ToUpper(blackbox.KeysPath)}
			unserved(t, s.banned(), targets)
			unserved(t, s.Place, targets) // nor is it served to other clients
			storetest.Equal(t, s.RawStatus(blackbox.KeysPath), "200", "the path itself")
		}, nil},
	{"CVE-2026-0976", "Keycloak: a parameter within a path hid its target from the proxy",
		func(t *testing.T, s stage) {
			token := "x-auth: " + s.boss["x-auth"]
			unserved(t, s.Place, []string{"/admin;x/system/waf/rules", "/admin;x=1/system/waf/rules", "/admin/system;/waf/rules",
				"/public;/../admin/system/waf/rules", "/admin/%3bx/system/waf/rules",
				"/admin/system/waf/rules;jsessionid=1"}, token)
			storetest.Equal(t, s.RawStatus(blackbox.RulesPath, token), "200", "the path itself")
		}, nil},
	{"CVE-2025-29914", "Coraza: the first part of a path beginning with // was parsed as a host",
		func(t *testing.T, s stage) {
			unserved(t, s.banned(), []string{"//localhost" + blackbox.KeysPath, "//x" + blackbox.KeysPath,
				"/" + blackbox.KeysPath,
				"///x/../" + blackbox.KeysPath,
				"//user@host" + blackbox.KeysPath, "/x/.." + blackbox.KeysPath})
			storetest.Equal(t, s.RawStatus(blackbox.KeysPath), "200", "the path itself, from elsewhere")
		}, nil},
	{"CVE-2025-54576", "oauth2-proxy: a public path in the query made any path public", func(t *testing.T, s stage) {
		p := s.banned()
		for _, query := range []string{"?x=/health/live", "?/health/live", "?path=/auth/login&x=1",
			"?x=%2Fhealth%2Flive", "?"} {
			p.Ask("GET", blackbox.KeysPath+query, nil, nil).Is(t, 403, "ACCESS_DENIED")
			s.Ask("GET", blackbox.RulesPath+query, nil, nil).Is(t, 401, "UNAUTHENTICATED")
			s.Ask("GET", blackbox.KeysPath+query, nil, nil).Is(t, 200, "")
		}
	}, nil},
	{"CVE-2026-41059", "oauth2-proxy: a # followed by a public path made any path public", func(t *testing.T, s stage) {
		unserved(t, s.banned(), []string{blackbox.KeysPath + "#/health/live", blackbox.KeysPath + "%23/health/live",
			blackbox.KeysPath + "#",
			"/health/live#" + blackbox.KeysPath})
		for _, target := range []string{blackbox.RulesPath + "#/health/live", blackbox.RulesPath + "%23/health/live"} {
			if got := s.RawStatus(target); got != "400" && got != "404" && got != "401" {
				t.Errorf("%s is answered %s", target, got)
			}
		}
		storetest.Equal(t, s.RawStatus(blackbox.KeysPath), "200", "the path itself, from elsewhere")
	}, nil},
	{"GO-2026-4762", "gRPC: a path without its leading slash was served without a rule", func(t *testing.T, s stage) {
		unserved(t, s.banned(), []string{blackbox.KeysPath[1:], "*" + blackbox.KeysPath, "." + blackbox.KeysPath, "x" +
			blackbox.KeysPath, "*"})
		storetest.Equal(t, s.RawStatus(blackbox.RulesPath[1:], "x-auth: "+s.boss["x-auth"]), "400", "without a slash")
		storetest.Equal(t, s.RawStatus(blackbox.RulesPath, "x-auth: "+s.boss["x-auth"]), "200", "the path itself")
	}, nil},
	{"GO-2026-4950", "fasthttp: a doubly encoded path escaped the folder of files",
		func(t *testing.T, s stage) {
			for _, folder := range []string{"/static/", "/cdn/", "/cdn/upload/", "/flags/"} {
				for _, up := range []string{"../", "..%2f", "%2e%2e/", "..%252f", "%252e%252e%252f", "..%5c", "..\\", "....//"} {
					for _, file := range []string{"master.key", "castellan.db", "dev-login.txt"} {
						if got := s.RawStatus(folder + strings.Repeat(up, 3) + file); got != "404" && got != "400" {
							t.Errorf("%s%s%s is answered %s", folder, up, file, got)
						}
					}
				}
			}
			for _, file := range []string{"/static/style.css", "/flags/TR.svg"} {
				storetest.Equal(t, s.RawStatus(file), "200", file, "is answered")
			}
		}, nil},
	{"CVE-2026-25882", "Fiber: a path with more parameters than a fixed list crashed the process",
		func(t *testing.T, s stage) {
			for _, parts := range []int{31, 64, 300} {
				path := "/cdn" + strings.Repeat("/a", parts)
				storetest.Equal(t, s.RawStatus(path), "404", parts, "parts")
				if got := s.RawStatus(blackbox.KeysPath + "?" + strings.Repeat("a=1&", parts)); got != "200" && got != "400" {
					t.Errorf("%d parameters: %s", parts, got)
				}
			}
			s.alive()
		}, nil},
	{"CVE-2026-42554", "Fiber: input of a client was returned as HTML if the client requested HTML",
		func(t *testing.T, s stage) {
			const script = "<script>alert(1)</script>"
			for _, accept := range []string{"text/html", "text/html;q=1, */*;q=0.1", "application/xml", "text/xhtml"} {
				for _, a := range []blackbox.Answer{
					s.Ask("GET", "/nothing?x=%3Cscript%3Ealert(1)%3C/script%3E", nil, blackbox.Headers{"Accept": accept}),
					s.Ask("POST", "/auth/login", map[string]string{"email": script, "password": script},
						blackbox.Headers{"Accept": accept}),
					s.Ask("POST", "/auth/login", `{"`+script+`"}`, blackbox.Headers{"Accept": accept, "Accept-Language": script}),
				} {
					if strings.Contains(string(a.Body), "<script") || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
						a.Header.Get("Content-Type") != "application/problem+json" {
						t.Errorf("%s: %v %s", accept, a.Header, a)
					}
				}
			}
		}, nil},
}
