package socket

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
)

// Frames that come in one packet with the handshake are not lost, whole or in
// part, and neither is the order.
func TestEarlyFrames(t *testing.T) {
	s := serve(t, settings{})
	for name, c := range map[string]struct {
		early, late []byte
		want        []string
	}{
		"ping": {masked(ws.NewPingFrame([]byte("1"))), nil, []string{"10 1"}},
		"half a frame": {masked(ws.NewPingFrame([]byte("12")))[:7], masked(ws.NewPingFrame([]byte("12")))[7:],
			[]string{"10 12"}},
		"many": {join(part(ws.OpText, true, strings.Repeat("x", maxFrame)),
			part(ws.OpText, true, strings.Repeat("x", maxFrame)), masked(ws.NewPingFrame([]byte("3")))), nil, []string{"10 3"}},
		"close":     {join(closing(1000, ""), masked(ws.NewPingFrame(nil))), nil, []string{"close 1000", "end"}},
		"a mistake": {ws.MustCompileFrame(ws.NewTextFrame(nil)), nil, []string{"close 1002", "end"}},
		"64 MiB": {head(ws.Header{Fin: true, OpCode: ws.OpBinary, Length: 64 << 20}), nil,
			[]string{"close 1009", "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, p := s.request("/2fa", upgrade+"p-auth: good-c1\r\n", c.early...)
			storetest.Equal(t, answer.StatusCode, 101, "status")
			p.t = t
			p.send(c.late)
			p.want(c.want...)
			p.conn.Close()
		})
	}
}

// The same over the poller, also if the server counts connections by address. The same over a
// goroutine per socket, which reads connections that do not expose their socket.
func TestOverTCP(t *testing.T) {
	for name, set := range map[string]settings{"poller": {}, "counted": {perIP: 20}, "goroutines": {opaque: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, set)
			s.happen("c1", method("m1"))
			p := s.open("c1")
			p.want("m1")
			s.hub.Receive(s.happen("c1", sealed(`{"success":true}`)))
			p.want("done true")
			p.send(masked(ws.NewPingFrame([]byte("a"))), part(ws.OpText, true, "ignored"), masked(ws.NewPingFrame([]byte("b"))))
			p.want("10 a", "10 b")
			for _, b := range masked(ws.NewPingFrame([]byte("byte by byte"))) {
				p.send([]byte{b})
			}
			p.want("10 byte by byte")
			p.send(closing(1000, ""))
			p.want("close 1000", "end")

			p = s.open("c1")
			p.want("m1", "done true")
			p.send(head(ws.Header{Fin: true, OpCode: ws.OpBinary, Length: 64 << 20}), make([]byte, 1<<16))
			p.want("close 1009", "end")

			for i := range 5 {
				p := s.open("c2")
				if i == 0 {
					p.conn.(*net.TCPConn).SetLinger(0) // a reset, not an end
					p.conn.Close()
					s.wait(func() bool { return s.hub.Live() == 0 })
				}
			}
			s.open("c2")
			s.wait(func() bool { return len(s.questions("c2")) > 0 && s.hub.Live() == 5 })
			s.open("c2").want("close 4429", "end")

			answer, p := s.request("/2fa", upgrade+"p-auth: brief-c3\r\n")
			storetest.Equal(t, answer.StatusCode, 101, "status")
			began := time.Now()
			p.want("close 4401")
			if took := time.Since(began); took < 900*time.Millisecond || took > 2*time.Second {
				t.Errorf("a life of a second took %v", took)
			}

			p = s.open("c4")
			s.wait(func() bool { return len(s.questions("c4")) > 0 }) // the answer to the handshake is ahead of it
			s.hub.Receive(stepup.News{ChallengeID: "c4", Gone: true})
			p.want("close 4410", "end")
			p = s.open("c5")
			s.hub.Close(t.Context())
			p.want("close 1012", "end")
			s.open("c5").want("close 1012", "end") // a socket that joins now is closed as well
			s.wait(func() bool { return s.hub.Live() == 0 })
		})
	}
}

// An idle socket has no goroutine, however many there are.
func TestIdleSocketsHaveNoGoroutines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only the poller of Linux saves them")
		return
	}
	s := serve(t, settings{})
	s.open("c0")
	s.wait(func() bool { return runtime.NumGoroutine() < 30 })
	before := runtime.NumGoroutine()
	for i := range 200 {
		s.open(fmt.Sprint("c", i))
	}
	s.wait(func() bool { return s.hub.Live() == 201 })
	s.wait(func() bool { return runtime.NumGoroutine() < before+10 })
}

// A thousand clients that read nothing are dropped in time, cost little until
// then, and those who read wait for none of them.
func TestThousandSlowReaders(t *testing.T) {
	const rooms, events = 200, 128
	s := serve(t, settings{})
	var quick []*peer
	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range rooms {
		wg.Go(func() {
			for i := range 5 {
				p := s.open(fmt.Sprint("c", n))
				p.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
				if i == 0 && n%20 == 0 {
					mu.Lock()
					quick = append(quick, p)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	text := `{"success":true,"data":{"fill":"` + strings.Repeat("x", 2000) + `"}}`
	var heard atomic.Int64
	for _, p := range quick {
		wg.Go(func() {
			for range events {
				p.want("done true")
				heard.Add(1)
			}
		})
	}
	before := heap()
	var slowest time.Duration
	for i := range events {
		for n := range rooms {
			news := s.happen(fmt.Sprint("c", n), sealed(text))
			began := time.Now()
			s.hub.Receive(news)
			slowest = max(slowest, time.Since(began))
		}
		s.wait(func() bool { return heard.Load() == int64(len(quick)*(i+1)) })
	}
	if most := heap(); most > before+64<<20 {
		t.Errorf("the heap grew by %d MiB", (most-before)>>20)
	}
	if slowest > writeTime/2 {
		t.Errorf("an event waited %v", slowest)
	}
	wg.Wait()
	s.wait(func() bool { return s.hub.Live() == int64(len(quick)) })
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A socket that ends frees its slot; no socket hears events of another one.
func TestComingAndGoing(t *testing.T) {
	s := serve(t, settings{})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 25 {
				id := fmt.Sprintf("c%d.%d", n, i)
				p := s.open(id)
				s.hub.Receive(s.happen(id, method(id)))
				p.send(masked(ws.NewPingFrame([]byte(id))))
				got := []string{p.next(), p.next()}
				if !slices.Contains(got, id) || !slices.Contains(got, "10 "+id) {
					t.Errorf("%s got %q", id, got)
				}
				if i%2 == 0 {
					p.send(closing(1000, ""))
					p.want("close 1000", "end")
				}
				p.conn.Close()
			}
		})
	}
	wg.Wait()
	s.wait(func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		return s.hub.Live() == 0 && len(s.hub.rooms) == 0
	})
}

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
	storetest.Equal(t, s.hub.Live(), 0, "sockets live")
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
