package edge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// announce is the head of a request whose body is still to come.
func announce(path string, length int, headers ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n",
		path, length, strings.Join(append(headers, ""), "\r\n"))
}

// answered reads one answer from a connection.
func answered(t testing.TB, c net.Conn) answer {
	t.Helper()
	resp := storetest.Value(http.ReadResponse(bufio.NewReader(c), nil))(t)
	body := storetest.Value(io.ReadAll(resp.Body))(t)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// until waits for a state.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after ten seconds: not %s", what)
		}
	}
}

// TestAnnouncedBodiesCostNothing: memory is paid for bytes that have come, not for
// bytes that were announced (D-GEN-12).
func TestAnnouncedBodiesCostNothing(t *testing.T) {
	const clients, length = 600, 1 << 20
	var judged atomic.Int64
	opts := allow()
	guard := opts.Guards[rest.User]
	opts.Guards[rest.User] = func(ctx context.Context, r *Request) (rest.Caller, error) {
		judged.Add(1)
		return guard(ctx, r)
	}
	s := serve(t, opts, rest.Post("/large", "", rest.User, nothing).Body(length))
	s.App.Server().ReadTimeout = time.Minute
	addr := listen(t, s)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range clients {
		io.WriteString(dial(t, addr), announce("/large", length, "x-auth: u1")+"{")
	}
	until(t, "every byte read", func() bool {
		return judged.Load() == clients && s.bodies.used.Load() == clients*firstBuffer
	})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 10; took > clients*40 {
		t.Errorf("%d KiB were allocated for %d connections", took, clients)
	}
}

// TestNoByteOfALargeBody: before the sender is known a large body has no more time to
// begin than any other; after that it has minutes and not a read time-out.
func TestNoByteOfALargeBody(t *testing.T) {
	const length = 100 << 10
	s := serve(t, allow(), rest.Post("/large", "", rest.User, nothing).Body(length))
	s.App.Server().ReadTimeout = 200 * time.Millisecond
	addr := listen(t, s)
	c := dial(t, addr)
	c.SetReadDeadline(time.Now().Add(largeReadTimeout / 2))
	io.WriteString(c, announce("/large", length))
	answered(t, c).is(t, 408, fault.RequestTimeout, "nothing of a large body")
	slow := dial(t, addr)
	text := `{"x":"` + strings.Repeat("x", length-8) + `"}`
	io.WriteString(slow, announce("/large", length, "x-auth: u1")+text[:1])
	time.Sleep(3 * s.App.Server().ReadTimeout)
	io.WriteString(slow, text[1:])
	answered(t, slow).is(t, 200, "", "a large body that takes longer than the read time-out")
}

// TestBodyBudget: all bodies together have bounded memory; a body beyond it is
// refused with a retry, and a request that ends frees its share.
func TestBodyBudget(t *testing.T) {
	const length = 100 << 10
	opts := allow()
	opts.BodyBudget = 256 << 10
	s := serve(t, opts, rest.Post("/large", "", rest.User, nothing).Body(length), rest.Post("/small", "", rest.NoAuth,
		nothing))
	addr := listen(t, s)
	text := `{"x":"` + strings.Repeat("x", length-8) + `"}`
	var held []net.Conn
	for range 2 {
		c := dial(t, addr)
		io.WriteString(c, announce("/large", length, "x-auth: u1")+text[:length-1])
		held = append(held, c)
	}
	until(t, "both bodies read", func() bool { return s.bodies.used.Load() == 2*length })
	late := dial(t, addr)
	io.WriteString(late, announce("/large", length, "x-auth: u1")+text)
	if a := answered(t, late); a.status != 503 || a.code() != string(fault.Overloaded) ||
		a.header.Get("Retry-After") != "1" {
		t.Errorf("beyond the budget: %d %v %s", a.status, a.header, a.body)
	}
	small := dial(t, addr)
	io.WriteString(small, announce("/small", 2)+"{}")
	answered(t, small).is(t, 200, "", "a small body within the budget")
	for _, c := range held {
		io.WriteString(c, text[length-1:])
		answered(t, c).is(t, 200, "", "a body within the budget")
	}
	until(t, "the memory is free", func() bool { return s.bodies.used.Load() == 0 })
}

// TestBudget: however many take and give at once, the budget is never exceeded and
// comes back whole.
func TestBudget(t *testing.T) {
	b := &budget{limit: 100}
	var has, most atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 2000 {
				if n := 10 + i; b.take(n) {
					now := has.Add(int64(n))
					for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
					}
					has.Add(-int64(n))
					b.release(n)
				}
			}
		})
	}
	all.Wait()
	if most.Load() > b.limit || b.used.Load() != 0 {
		t.Errorf("most %d, left %d", most.Load(), b.used.Load())
	}
}

// TestRefusedAtTheHead: what no byte of the body can change is answered when the
// head has come, without 100 Continue, and the connection ends (D-GEN-12).
func TestRefusedAtTheHead(t *testing.T) {
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth, nothing), rest.Post("/large", "", rest.User,
		nothing).Body(1<<20),
		rest.Post("/things/{id}", "", rest.User, nothing).Body(1<<20))
	s.App.Server().ReadTimeout = time.Minute
	addr := listen(t, s)
	for _, c := range []struct {
		name, text string
		status     int
	}{
		{"too large", announce("/x", 16<<10+1), 413},
		{"too large, asking first", announce("/x", 16<<10+1, "Expect: 100-continue"), 413},
		{"far too large", announce("/x", 1<<40), 413},
		{"too large for a large one", announce("/large?x=1", 1<<20+1, "x-auth: u1", "Expect: 100-continue"), 413},
		{"too large for a path with a parameter", announce("/things/7", 1<<20+1, "x-auth: u1"), 413},
		{"no such path", announce("/nowhere", 10, "Expect: 100-continue"), 404},
		{"no such path, chunked", "POST /no HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 404},
		{"no such method", strings.Replace(announce("/large", 10), "POST", "DELETE", 1), 405},
		{"another spelling", announce("//large", 10), 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, addr)
			io.WriteString(conn, c.text)
			if a := parsed(t, receive(t, conn)); a.status != c.status {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	storetest.Equal(t, s.bodies.used.Load(), 0, "bytes are held")
}

// TestLargeBodyAfterItsCredential: of a large body nothing but its first byte is
// waited for before the credential is judged, and what a refused client goes on to
// send is no request.
func TestLargeBodyAfterItsCredential(t *testing.T) {
	var ran atomic.Int64
	run := func(context.Context, rest.Caller, rest.None) (rest.None, error) { ran.Add(1); return rest.None{}, nil }
	s := serve(t, allow(), rest.Post("/large", "", rest.User, run).Body(1<<20), rest.Get("/victim", "", rest.NoAuth, run))
	s.App.Server().ReadTimeout = time.Minute
	addr := listen(t, s)
	conn := dial(t, addr)
	io.WriteString(conn, announce("/large", 1<<20)+"{")
	parsed(t, receive(t, conn)).is(t, 401, fault.Unauthenticated)
	victim := "GET /victim HTTP/1.1\r\nHost: a\r\n\r\n"
	if answers, closed := wire(t, addr, announce("/large", 1+len(victim))+" "+victim+victim, 2); len(answers) != 1 ||
		!closed || ran.Load() != 0 {
		t.Errorf("%+v, closed %v, ran %d", answers, closed, ran.Load())
	}
	if answers, _ := wire(t, addr, announce("/large", 20<<10, "x-auth: u1")+"{}"+strings.Repeat(" ", 20<<10-2)+victim,
		2); len(answers) != 2 || answers[0].status != 200 || answers[1].status != 200 || ran.Load() != 2 {
		t.Errorf("%+v, ran %d", answers, ran.Load())
	}
}

// TestLostWhileSending: a session that ends while its large body comes is refused.
func TestLostWhileSending(t *testing.T) {
	var skew atomic.Int64
	var lost atomic.Bool
	opts := allow()
	opts.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	guard := opts.Guards[rest.User]
	opts.Guards[rest.User] = func(ctx context.Context, r *Request) (rest.Caller, error) {
		if lost.Load() {
			return rest.Caller{}, fault.New(fault.TokenRevoked, "the session has ended")
		}
		return guard(ctx, r)
	}
	s := serve(t, opts, rest.Post("/large", "", rest.User, nothing).Body(1<<20))
	addr := listen(t, s)
	c := dial(t, addr)
	io.WriteString(c, announce("/large", 2, "x-auth: u1")+"{")
	until(t, "the first byte read", func() bool { return s.bodies.used.Load() > 0 })
	lost.Store(true)
	skew.Store(int64(2 * stillTime))
	io.WriteString(c, "}")
	answered(t, c).is(t, 401, fault.TokenRevoked)
}

// TestIncompleteBodies: a body that ends early or has trailers is refused, and its
// handler does not run.
func TestIncompleteBodies(t *testing.T) {
	var ran atomic.Int64
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth,
		func(context.Context, rest.Caller, rest.None) (rest.None, error) { ran.Add(1); return rest.None{}, nil }))
	addr := listen(t, s)
	inChunks := "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, text := range []string{
		announce("/x", 4) + "{}", announce("/x", 2,
			"Trailer: x-auth") + "{}", inChunks + "4\r\n{}", inChunks + "2\r\n{}\r\n", inChunks +
			"2\r\n{}\r\n0\r\nx-auth: u1\r\n\r\n",
		inChunks + "2\r\n{}\r\n0\r\nx: 1\r\nx: 2\r\n\r\n", inChunks + "2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n", inChunks +
			"2\r\n{}x\r\n0\r\n\r\n",
	} {
		c := dial(t, addr)
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		parsed(t, receive(t, c)).is(t, 400, fault.InvalidField, text)
	}
	storetest.Equal(t, ran.Load(), 0, "ran")
}

// TestBodiesOnTheirWayAreNotInFlight: clients that are slow to send a body take no
// place from the others.
func TestBodiesOnTheirWayAreNotInFlight(t *testing.T) {
	opts := allow()
	opts.MaxInFlight = 1
	s := serve(t, opts, rest.Post("/x", "", rest.NoAuth, nothing))
	addr := listen(t, s)
	slow := dial(t, addr)
	io.WriteString(slow, announce("/x", 2)+"{")
	until(t, "the first byte read", func() bool { return s.bodies.used.Load() > 0 })
	quick := dial(t, addr)
	io.WriteString(quick, announce("/x", 2)+"{}")
	answered(t, quick).is(t, 200, "")
	io.WriteString(slow, "}")
	if a := answered(t, slow); a.status != 200 || s.InFlight() != 0 {
		t.Errorf("%d %s, in flight %d", a.status, a.body, s.InFlight())
	}
}

// TestBodyLimits: the limit of a request is known before it is routed.
func TestBodyLimits(t *testing.T) {
	l := bodyLimits{paths: map[string][]bodyLimit{}}
	l.add("POST", "/a", 1)
	l.add("GET", "/a", 2)
	l.add("POST", "/a/:id", 3)
	l.add("POST", "/a/:id/b", 4)
	l.add("GET", "/docs/*", 5)
	for target, want := range map[string]int{
		"POST /a": 1, "GET /a?x=/a/1": 2, "HEAD /a": 2, "PUT /a": 0, "POST /a/": 0, "POST /a/1": 3, "POST /a/1/": 0,
		"POST /a/1/b": 4, "POST /a//b": 0,
		"POST /a/1/c": 0, "GET /docs/x/y": 5, "GET /docs/": 5, "GET /docs": 0, "POST /": 0, "POST ": 0, "POST /A": 0,
	} {
		method, path, _ := strings.Cut(target, " ")
		storetest.Equal(t, l.of([]byte(method), []byte(path)), want, target)
	}
}
