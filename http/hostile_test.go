package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/http/rest"
	"castellan/internal/blackbox"
)

var (
	hostileRequests = flag.Int("hostile.requests", 4000, "how many spoilt requests TestHostileRequests sends")
	hostileSeed     = flag.Uint64("hostile.seed", 1, "where their random choices begin")
)

const (
	hostileRound   = 200_000 // requests to one program and database; the next round starts again
	hostileBatch   = 10_000  // requests between two logins
	hostileSenders = 16
	hostileGrowth  = 64 << 20 // bytes of heap by which the last batch of a round may exceed the second
)

// The example of every endpoint is spoilt in up to four ways, over and over, and sent to the whole program over
// real connections. For any input: nothing panics or is logged as an error, and no answer is a server error but
// 503 with Retry-After. Each answer has the security headers, JSON is valid, a problem has a code, and memory
// stays flat. `make fuzz-long` sends ten million; the command prints the seed by which a run is repeated.
func TestHostileRequests(t *testing.T) {
	began, sent, round := time.Now(), 0, uint64(0)
	statuses := map[int]int{}
	for ; sent < *hostileRequests && !t.Failed(); round++ {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			dir := t.TempDir()
			l := start(t, dir, databases["sqlite"](t))
			h := &hostile{live: l, t: t, all: l.tell(nil), statuses: statuses}
			sent += h.round(min(hostileRound, *hostileRequests-sent), *hostileSeed+round)
		})
	}
	took := time.Since(began)
	t.Logf("%d requests in %v from seed %d, %d rounds, %.0f a second, answers %v", sent, took.Round(time.Second),
		*hostileSeed, round, float64(sent)/took.Seconds(), statuses)
	if sent < *hostileRequests || len(statuses) < 8 {
		t.Errorf("%d of %d requests were sent, answered by %d statuses", sent, *hostileRequests, len(statuses))
	}
}

// hostile is a program and those who send it what is wrong.
type hostile struct {
	*live
	t        testing.TB
	all      []told
	mu       sync.Mutex
	statuses map[int]int
}

// round sends n requests and returns how many were sent: fewer when they took the accounts away from the test.
func (h *hostile) round(n int, seed uint64) (sent int) {
	var steady uint64
	for batch := uint64(0); sent < n && !h.t.Failed(); batch++ {
		if !h.enter(h.user) || !h.enter(h.admin) {
			h.t.Logf("after %d requests nobody can log in any more: a new program", sent)
			return max(sent, 1)
		}
		var next, done atomic.Int64
		most := int64(min(hostileBatch, n-sent))
		var senders sync.WaitGroup
		for i := range hostileSenders {
			senders.Go(func() {
				s := &sender{hostile: h, Rand: rand.New(rand.NewPCG(seed<<20|batch, uint64(i)))}
				defer s.hangUp()
				for next.Add(1) <= most && !h.t.Failed() {
					s.once()
					done.Add(1)
				}
			})
		}
		senders.Wait()
		sent += int(done.Load())
		heap := heapInUse()
		h.t.Logf("%d requests, %d MiB of heap, %d goroutines", sent, heap>>20, runtime.NumGoroutine())
		if batch == 1 {
			steady = heap
		}
		if steady > 0 && heap > steady+hostileGrowth {
			h.t.Errorf("%d MiB of heap after %d requests, %d MiB after the second batch", heap>>20, sent, steady>>20)
		}
	}
	return sent
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what a finalizer let go in the first
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// enter logs a user in, if that is still possible: an administrator's request may have changed the account.
func (h *hostile) enter(p *person) bool {
	f, err := h.TryLogin(p.Account)
	if err != nil {
		return false
	}
	p.pAuth = f.PAuth
	for _, m := range f.MethodList {
		if m.Name != "SMS" && m.Name != "MAIL" {
			continue
		}
		code, err := h.TryCodeOf(f, p.Account, m.Name)
		if err != nil {
			return false
		}
		a, err := h.TryComplete(f, m, code)
		if err != nil || a.Status != 200 {
			return false
		}
		if x := a.Header.Get("x-auth"); x != "" {
			p.xAuth = x
			return true
		}
	}
	return false
}

// sender is one connection and its random choices.
type sender struct {
	*hostile
	*rand.Rand
	conn net.Conn
	in   *bufio.Reader
}

func (s *sender) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// once sends one spoilt request and judges its answer.
func (s *sender) once() {
	x := s.all[s.IntN(len(s.all))]
	m := s.spoil(x)
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.cfg.HTTP.Addr, 10*time.Second)
		if err != nil {
			s.t.Errorf("connect: %v", err)
			return
		}
		s.conn, s.in = conn, bufio.NewReader(conn)
	}
	_ = s.conn.SetDeadline(time.Now().Add(60 * time.Second)) // a hang fails
	text := m.text()
	_, sendErr := s.conn.Write(text)
	if m.broken {
		_ = s.conn.(*net.TCPConn).CloseWrite()
	}
	for {
		resp, err := http.ReadResponse(s.in, &http.Request{Method: m.method})
		if err != nil {
			var slow net.Error
			switch {
			case errors.As(err, &slow) && slow.Timeout():
				s.t.Errorf("no answer to %.2000q", text)
			case !m.broken && sendErr == nil && errors.Is(err, io.ErrUnexpectedEOF) && s.in.Buffered() > 0:
				s.t.Errorf("%v to %.2000q", err, text)
			}
			s.hangUp()
			return
		}
		body, err := io.ReadAll(resp.Body)
		if why := s.judge(resp, body, err); why != "" {
			s.t.Errorf("%s: %d %v %.1000s\nto %.3000q", why, resp.StatusCode, resp.Header, body, text)
		}
		if resp.Close || resp.StatusCode == http.StatusSwitchingProtocols {
			s.hangUp()
			return
		}
		if !m.broken && resp.StatusCode >= 200 {
			return
		}
	}
}

// judge says what is wrong with an answer; "" where nothing is.
func (s *sender) judge(a *http.Response, body []byte, err error) string {
	s.mu.Lock()
	s.statuses[a.StatusCode]++
	s.mu.Unlock()
	if a.StatusCode < 200 {
		return ""
	}
	kind := a.Header.Get("Content-Type")
	var p struct{ Code string }
	switch {
	case err != nil:
		return "the body ends early: " + err.Error()
	case a.StatusCode >= 500 && (a.StatusCode != 503 || a.Header.Get("Retry-After") == ""):
		return "a server error"
	case a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Content-Security-Policy") == "" ||
		a.Header.Get("Referrer-Policy") == "" || a.Header.Get("Cache-Control") == "" || a.Header.Get("Server") != "":
		return "the headers of security"
	case len(body) == 0 || !strings.Contains(kind, "json"):
		if a.StatusCode >= 400 && len(body) > 0 {
			return "a refusal that is no problem"
		}
		return ""
	case !json.Valid(body):
		return "not JSON"
	case kind == rest.TypeProblem && (json.Unmarshal(body, &p) != nil || p.Code == ""):
		return "a problem without a code"
	case bytes.Contains(body, []byte("goroutine ")) || bytes.Contains(body, []byte(".go:")):
		return "an answer that tells of the code"
	}
	return ""
}

// credentials are those of an endpoint, mostly.
func (s *sender) credentials(e rest.Endpoint, admin bool) blackbox.Headers {
	who := s.user
	if admin != (s.IntN(20) == 0) {
		who = s.admin
	}
	h := blackbox.Headers{"country": "TR"}
	switch e.Credential {
	case rest.User, rest.Tenant, rest.TenantOrCron, rest.TenantOrService:
		h["x-auth"] = who.xAuth
	case rest.PAuth, rest.PAuthOrDevice:
		h["p-auth"] = who.pAuth
	case rest.OTAuth:
		h["ot-auth"] = who.otAuth
	case rest.Service:
		h["service-auth"] = s.service
	}
	return h
}
