package faults

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

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
			targets := []string{strings.ToUpper(blackbox.KeysPath)}
			for _, tail := range []string{"/", "//", ";x=1", ";", "/.", "/./", "/;"} {
				targets = append(targets, blackbox.KeysPath+tail)
			}
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
				"/" + blackbox.KeysPath, "///x/../" + blackbox.KeysPath, "//user@host" + blackbox.KeysPath,
				"/x/.." + blackbox.KeysPath})
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
			blackbox.KeysPath + "#", "/health/live#" + blackbox.KeysPath})
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

// untrusted sends a request from a peer that is no proxy, and returns the status.
func (st stage) untrusted(target string, headers ...string) string {
	st.T.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c := storetest.Value(d.Dial("tcp", strings.TrimPrefix(st.URL, "http://")))(st.T)
	defer c.Close()
	c.SetDeadline(time.Now().Add(blackbox.Within(10)))
	text := "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	for _, h := range headers {
		text += h + "\r\n"
	}
	storetest.Must(st.T, storetest.Err(io.WriteString(c, text+"\r\n")))
	got := storetest.Value(io.ReadAll(c))(st.T)
	return strings.Fields(string(got) + " none none")[1]
}

// Headers that give the origin of a request.
var replaysOfProxies = []replay{
	{"CVE-2023-41338", "Fiber: a header made any client appear local", func(t *testing.T, s stage) {
		for _, h := range []blackbox.Headers{{"X-Forwarded-For": s.IP}, {"X-Forwarded-For": "127.0.0.1, " + s.IP},
			{"X-Forwarded-For": s.IP + ", 127.0.0.1"}, {"X-Forwarded-For": "::1, " + s.IP}, {"Forwarded": "for=" + s.IP}} {
			for _, path := range []string{"/dev/outbox", "/dev/outbox/page", "/dev/service", "/"} {
				s.Do(t, "GET", path, nil, h).Is(t, 403, "FORBIDDEN")
			}
		}
		s.Do(t, "GET", "/dev/outbox", nil, nil).Is(t, 200, "")
		s.Do(t, "GET", "/dev/outbox", nil, blackbox.Headers{"X-Forwarded-For": "127.0.0.1"}).Is(t, 200, "")
	}, nil},
	{"CVE-2026-45045", "Fiber: X-Real-IP was trusted from any sender", func(t *testing.T, s stage) {
		p := s.banned()
		for _, name := range []string{"X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "X-Cluster-Client-IP",
			"Fastly-Client-IP", "Forwarded"} {
			p.Ask("GET", blackbox.KeysPath, nil, blackbox.Headers{name: s.IP}).Is(t, 403, "ACCESS_DENIED")
			s.Ask("GET", blackbox.KeysPath, nil, blackbox.Headers{name: p.IP}).Is(t, 200, "")
		}
		// Without a trusted proxy, the usual header is ignored.
		blackbox.Rule(t, s.Node, s.boss, "peer", "blacklist",
			map[string]any{"targetEntities": []string{"127.0.0.2"}, "targetResources": []string{"GET " + blackbox.KeysPath}})
		storetest.Equal(t, s.untrusted(blackbox.KeysPath, "X-Forwarded-For: "+s.IP), "403", "a peer with a foreign address")
		storetest.Equal(t, s.untrusted("/health/live", "X-Forwarded-For: "+p.IP), "200", "another path")
	}, nil},
	{"CVE-2025-64484", "oauth2-proxy: X_Forwarded_For passed the filter and was read as X-Forwarded-For",
		func(t *testing.T, s stage) {
			p := s.banned()
			for _, h := range []string{"X_Forwarded_For: " + s.IP, "X_FORWARDED_FOR: " + s.IP, "X-Forwarded_For: " + s.IP} {
				storetest.Equal(t, p.RawStatus(blackbox.KeysPath, h), "403", h)
			}
			for _, name := range []string{"x_auth", "X_Auth", "x.auth"} {
				storetest.Equal(t, s.RawStatus(blackbox.SessionsPath, name+": "+s.boss["x-auth"]), "401", name)
			}
			storetest.Equal(t, s.RawStatus(blackbox.SessionsPath, "X-AUTH: "+s.boss["x-auth"]), "200", "the header itself")
		}, nil},
	{"CVE-2026-40575", "oauth2-proxy: the path in X-Forwarded-Uri was checked instead of the executed one",
		func(t *testing.T, s stage) {
			p := s.banned()
			for _, name := range []string{"X-Forwarded-Uri", "X-Original-Url", "X-Rewrite-Url", "X-Forwarded-Path",
				"X-Original-Uri", "X-Forwarded-Prefix"} {
				h := blackbox.Headers{name: "/health/live"}
				p.Ask("GET", blackbox.KeysPath, nil, h).Is(t, 403, "ACCESS_DENIED")
				s.Ask("GET", blackbox.RulesPath, nil, h).Is(t, 401, "UNAUTHENTICATED")
				p.Ask("GET", "/health/live", nil, blackbox.Headers{name: blackbox.KeysPath}).Is(t, 200, "")
			}
			for _, name := range []string{"X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method", "X-Forwarded-Method"} {
				p.Ask("GET", blackbox.KeysPath, nil, blackbox.Headers{name: "HEAD"}).Is(t, 403, "ACCESS_DENIED")
			}
		}, nil},
	{"CVE-2024-25124", "Fiber: pages of every origin could be allowed, with credentials", func(t *testing.T, s stage) {
		preflight := func(origin string) blackbox.Answer {
			return s.Ask("OPTIONS", "/auth/login", nil, blackbox.Headers{"Origin": origin,
				"Access-Control-Request-Method":  "POST",
				"Access-Control-Request-Headers": "content-type,p-auth"})
		}
		for _, origin := range []string{"https://evil.example.test", "null", appOrigin + ".evil.test",
			"http://app.example.test", "*"} {
			for _, a := range []blackbox.Answer{preflight(origin), s.Ask("GET", blackbox.KeysPath, nil,
				blackbox.Headers{"Origin": origin})} {
				storetest.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "", origin, "is allowed as")
			}
		}
		storetest.Equal(t, preflight(appOrigin).Header.Get("Access-Control-Allow-Origin"), appOrigin, "the app")
		for _, wild := range []string{"*", "https://*", "null"} {
			if got := s.s.CommandWith([]string{"HTTP_CORS_ORIGINS=" + wild}, "", "serve"); !slices.Contains([]int{1, 2},
				got.Code) {
				t.Errorf("it starts with the origin %s", wild)
			}
		}
	}, nil},
}

// Frames of the socket.
var replaysOfFrames = []replay{
	{"CVE-2020-27813", "gorilla/websocket: the length of a frame overflowed, and the connection waited for ever",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			watched := s.Socket(t, f)
			for _, length := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1, 64 << 20} {
				bad := s.Socket(t, f)
				bad.Send(binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, length), []byte{1, 2, 3, 4, 'x'})
				bad.Closed(blackbox.Within(10))
			}
			s.answer(a, f, "SMS").Is(t, 200, "")
			watched.Expect(f, "LOGIN", "METHOD_COMPLETE")
			watched.Expect(f, "LOGIN", "ACTION_COMPLETE")
			s.alive()
		}, nil},
}
