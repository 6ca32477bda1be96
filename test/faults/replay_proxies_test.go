package faults

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

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
				"X-Original-Uri",
				"X-Forwarded-Prefix"} {
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
