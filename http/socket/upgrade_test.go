package socket

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
)

func TestHandshake(t *testing.T) {
	s := serve(t, settings{Options: Options{Origins: []string{"https://app.example.com"}, Loopback: true}})
	n := 0
	for name, c := range map[string]struct{ target, headers, protocol string }{
		"header":                {"/2fa", "p-auth: good-c1\r\n", ""},
		"query":                 {"/2fa?p-auth=good-c1", "", ""},
		"subprotocol":           {"/2fa", "Sec-WebSocket-Protocol: p-auth, good-c1\r\n", "p-auth"},
		"subprotocol, no blank": {"/2fa", "Sec-WebSocket-Protocol: p-auth,good-c1\r\n", "p-auth"},
		"header and protocol":   {"/2fa", "p-auth: good-c1\r\nSec-WebSocket-Protocol: p-auth\r\n", "p-auth"},
		"listed origin":         {"/2fa?p-auth=good-c1", "Origin: https://app.example.com\r\n", ""},
		"own page":              {"/2fa?p-auth=good-c1", "Origin: http://" + s.addr + "\r\n", ""},
		"compression offered":   {"/2fa?p-auth=good-c1", "Sec-WebSocket-Extensions: permessage-deflate\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n++
			// a challenge takes five sockets, and closing takes its time
			own := strings.NewReplacer("good-c1", fmt.Sprint("good-c", n))
			s.happen(fmt.Sprint("c", n), method("m1"))
			answer, p := s.request(own.Replace(c.target), upgrade+own.Replace(c.headers))
			h := answer.Header
			if answer.StatusCode != 101 || h.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" ||
				h.Get("Sec-WebSocket-Protocol") != c.protocol || h.Get("Sec-WebSocket-Extensions") != "" {
				t.Fatalf("%d %v", answer.StatusCode, h)
			}
			p.want("m1")
			p.conn.Close()
		})
	}
}

func TestRefusals(t *testing.T) {
	s := serve(t, settings{Options: Options{Origins: []string{"https://app.example.com"}}})
	without := func(header string) string {
		var kept []string
		for line := range strings.Lines(upgrade) {
			if !strings.HasPrefix(line, header) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	const good = "p-auth: good-c1\r\n"
	for name, c := range map[string]struct {
		target, headers string
		status          int
		code            fault.Code
	}{
		"no token":      {"/2fa", upgrade, 401, fault.Unauthenticated},
		"empty token":   {"/2fa?p-auth=", upgrade + "p-auth: \r\n", 401, fault.Unauthenticated},
		"bad token":     {"/2fa", upgrade + "p-auth: bad\r\n", 401, fault.Unauthenticated},
		"expired token": {"/2fa?p-auth=old-c1", upgrade, 401, fault.TokenExpired},
		"another subprotocol": {"/2fa", upgrade + "Sec-WebSocket-Protocol: chat, good-c1\r\n", 401,
			fault.Unauthenticated},
		"x-auth is no p-auth":   {"/2fa", upgrade + "x-auth: good-c1\r\n", 401, fault.Unauthenticated},
		"two tokens":            {"/2fa", upgrade + good + "p-auth: good-c2\r\n", 400, fault.InvalidField},
		"foreign origin":        {"/2fa", upgrade + good + "Origin: https://evil.example.com\r\n", 403, fault.Forbidden},
		"origin without a name": {"/2fa", upgrade + good + "Origin: null\r\n", 403, fault.Forbidden},
		"origin of a subdomain": {"/2fa", upgrade + good + "Origin: https://app.example.com.evil.example\r\n",
			403, fault.Forbidden},
		"loopback page, not in development": {"/2fa", upgrade + good + "Origin: http://" + s.addr +
			"\r\n", 403, fault.Forbidden},
		"no upgrade":           {"/2fa", good, 400, fault.InvalidField},
		"no upgrade, no token": {"/2fa", "", 401, fault.Unauthenticated},
		"HEAD":                 {"HEAD /2fa HTTP/1.1", upgrade + good, 400, ""},
		"POST": {"POST /2fa HTTP/1.1", upgrade + good + "Content-Length: 0\r\n", 405,
			fault.MethodNotAllowed},
		"HTTP/1.0":             {"GET /2fa HTTP/1.0", upgrade + good, 400, fault.InvalidField},
		"no connection header": {"/2fa", without("Connection") + good, 400, fault.InvalidField},
		"no version":           {"/2fa", without("Sec-WebSocket-Version") + good, 400, fault.InvalidField},
		"version 8": {"/2fa", without("Sec-WebSocket-Version") + "Sec-WebSocket-Version: 8\r\n" +
			good, 400, fault.InvalidField},
		"no key": {"/2fa", without("Sec-WebSocket-Key") + good, 400, fault.InvalidField},
		"short key": {"/2fa", without("Sec-WebSocket-Key") + "Sec-WebSocket-Key: c2hvcnQ=\r\n" + good,
			400, fault.InvalidField},
		"another path": {"/2fa/", upgrade + good, 404, fault.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			answer, p := s.request(c.target, c.headers)
			var problem struct {
				Status int
				Code   fault.Code
			}
			if c.code != "" {
				if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil || problem.Status != c.status ||
					problem.Code != c.code {
					t.Errorf("%+v, %v", problem, err)
				}
			}
			if answer.StatusCode != c.status || answer.Header.Get("Content-Type") != "application/problem+json" ||
				answer.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d %v", answer.StatusCode, answer.Header)
			}
			if c.code == fault.InvalidField && name != "two tokens" && answer.Header.Get("Sec-WebSocket-Version") != "13" {
				t.Errorf("it does not say which version is spoken: %v", answer.Header)
			}
			p.conn.Close()
		})
	}
	if n := s.hub.Live(); n != 0 {
		t.Errorf("%d sockets live", n)
	}
}

func TestNoRoomForSockets(t *testing.T) {
	s := serve(t, settings{Options: Options{MaxSockets: 2}})
	s.open("c1")
	p := s.open("c2")
	s.wait(func() bool { return s.hub.Live() == 2 })
	answer, _ := s.request("/2fa", upgrade+"p-auth: good-c3\r\n")
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	p.conn.Close()
	s.wait(func() bool { return s.hub.Live() == 1 })
	s.open("c3")
	draining := serve(t, settings{draining: true})
	if answer, _ := draining.request("/2fa", upgrade+"p-auth: good-c1\r\n"); answer.StatusCode != 503 {
		t.Errorf("draining: %d", answer.StatusCode)
	}
}
