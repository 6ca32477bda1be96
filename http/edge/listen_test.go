package edge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c := storetest.Value(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// receive reads what comes until the end, which must be an orderly one.
func receive(t testing.TB, c net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("after %q: %v", text, err)
	}
	return string(text)
}

// parsed is the one answer in a text, which must be a problem of the one shape.
func parsed(t testing.TB, text string) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	a := answer{resp.StatusCode, resp.Header, string(body)}
	if !resp.Close || a.header.Get("Content-Type") != rest.TypeProblem || a.header.Get("Cache-Control") != "no-store" ||
		a.header.Get("Api-Version") != "1" || a.header.Get("Server") != "" || a.header.Get("X-Request-Id") == "" ||
		!strings.HasSuffix(a.body, `"requestId":"`+a.header.Get("X-Request-Id")+`"}`) {
		t.Errorf("shape, closed %v: %s", resp.Close, text)
	}
	return a
}

// TestUnfinished: a client that sends nothing is closed without an answer and a report; a
// client that stops in the middle of a request gets the reason.
func TestUnfinished(t *testing.T) {
	var reported atomic.Int64
	opts := allow()
	opts.Observe = func(context.Context, Answered) { reported.Add(1) }
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth, nothing), rest.Post("/x", "", rest.NoAuth, nothing))
	s.App.Server().ReadTimeout, s.App.Server().IdleTimeout = 200*time.Millisecond, 200*time.Millisecond
	addr := listen(t, s)
	const whole = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
	const head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, text string
		status     []int
	}{
		{"nothing", "", nil},
		{"one byte", "G", []int{408}},
		{"half a line", "GET /x HT", []int{408}},
		{"no end of the header", "GET /x HTTP/1.1\r\nHost: a\r\n", []int{408}},
		{"no body", head + "Content-Length: 10\r\n\r\n", []int{408}},
		{"half a body", head + "Content-Length: 10\r\n\r\n{", []int{408}},
		{"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", []int{408}},
		{"a request, then nothing", whole, []int{200}},
		{"a request, then half of one", whole + "GET /x", []int{200, 408}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reported.Store(0)
			conn := dial(t, addr)
			storetest.Must(t, storetest.Err(io.WriteString(conn, c.text)))
			text := receive(t, conn)
			answers := strings.Split(text, "HTTP/1.1 ")[1:]
			if len(answers) != len(c.status) || len(c.status) == 0 && text != "" {
				t.Fatalf("got %q, want the answers %v", text, c.status)
			}
			for i, status := range c.status {
				if !strings.HasPrefix(answers[i], fmt.Sprint(status)) {
					t.Errorf("answer %d: %q, want %d", i, answers[i], status)
				}
				if status == 408 {
					parsed(t, "HTTP/1.1 "+answers[i]).is(t, status, fault.RequestTimeout)
				}
			}
			storetest.Equal(t, reported.Load(), int64(len(c.status)), "reported requests")
		})
	}
}

// TestBroken: a client that resets its connection is no error of the service.
func TestBroken(t *testing.T) {
	opts := allow()
	opts.Observe = func(_ context.Context, a Answered) { t.Errorf("reported %+v", a) }
	s := serve(t, opts, rest.Post("/x", "", rest.NoAuth, nothing))
	addr := listen(t, s)
	for _, text := range []string{"", "G", "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"} {
		c := dial(t, addr)
		io.WriteString(c, text)
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	until(t, "all connections closed", func() bool { return s.App.Server().GetOpenConnectionsCount() == 0 })
}

// TestTooLargeIsRead: a client that sends the whole of a body that is refused at
// its first bytes reads the refusal all the same, not a reset (D-GEN-12).
func TestTooLargeIsRead(t *testing.T) {
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth, nothing))
	addr := listen(t, s)
	for _, size := range []int{1<<20 + 1, 2 << 20, 20 << 20} {
		for _, chunked := range []bool{false, true} {
			c := dial(t, addr)
			head := fmt.Sprintf("Content-Length: %d\r\n\r\n", size)
			if chunked {
				head = fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size)
			}
			if _, err := io.WriteString(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+
				""+head+strings.Repeat(" ", size)); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			parsed(t, receive(t, c)).is(t, 413, fault.PayloadTooLarge, size, "bytes")
		}
	}
	// It also reads what else could not be taken in.
	c := dial(t, addr)
	io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	parsed(t, receive(t, c)).is(t, 431, fault.HeadersTooLarge)
}

// TestLingeringEnds: a client that never stops sending does not keep a connection.
func TestLingeringEnds(t *testing.T) {
	s := serve(t, allow(), rest.Post("/x", "", rest.NoAuth, nothing))
	addr := listen(t, s)
	c := dial(t, addr)
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 1<<40)
	sent, piece := 0, make([]byte, 64<<10)
	for {
		n, err := c.Write(piece)
		if sent += n; err != nil {
			break
		}
	}
	if most := lingerBytes + (16 << 20); sent > most { // and what the kernels hold
		t.Errorf("%d bytes were taken, want at most %d", sent, most)
	}
	// A client that keeps still does not either.
	began := time.Now()
	c = dial(t, addr)
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 1<<40)
	parsed(t, receive(t, c))
	for s.App.Server().GetOpenConnectionsCount() > 0 {
		if time.Since(began) > lingerTime+5*time.Second {
			t.Fatal("the connection is still open")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestTooManyOfOnePeer: a peer with all its connections taken is refused, other peers are
// served, and a closed connection frees its place.
func TestTooManyOfOnePeer(t *testing.T) {
	const most = 3
	opts := allow()
	opts.MaxConnectionsPerIP = most
	addr := listen(t, serve(t, opts, rest.Get("/x", "", rest.NoAuth, nothing)))
	from := func(ip string) (net.Conn, answer) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
		c := storetest.Value(d.Dial("tcp", addr))(t)
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
		resp := storetest.Value(http.ReadResponse(bufio.NewReader(c), nil))(t)
		body, _ := io.ReadAll(resp.Body)
		return c, answer{resp.StatusCode, resp.Header, string(body)}
	}
	var held net.Conn
	for i := range most {
		c, a := from("127.0.0.1")
		if held = c; a.status != 200 {
			t.Fatalf("connection %d: %d", i, a.status)
		}
	}
	if _, a := from("127.0.0.1"); a.status != 503 || a.code() != string(fault.Overloaded) ||
		a.header.Get("Retry-After") != "1" {
		t.Errorf("one too many: %d %v %s", a.status, a.header, a.body)
	}
	if _, a := from("127.0.0.2"); a.status != 200 {
		t.Errorf("another peer: %d", a.status)
	}
	held.Close()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, a := from("127.0.0.1"); a.status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a place that was given up is not free")
		}
	}
}

// One peer of IPv6 is a network of 64 bits, whichever address it uses; IPv4 in
// IPv6 is IPv4. Nothing is kept of a peer that has gone.
func TestPeers(t *testing.T) {
	opts := allow()
	opts.MaxConnectionsPerIP = 1
	l := newListener(nil, serve(t, opts))
	var in []*connection
	for _, c := range []struct {
		ip   string
		want bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8:0:1::1", true}, {"2001:db8:0:1:ffff::2", false}, {"2001:db8:0:2::1", true},
	} {
		conn := &connection{from: l}
		storetest.Equal(t, l.enter(conn, peerOf(&net.TCPAddr{IP: net.ParseIP(c.ip)})), c.want, c.ip, "enters")
		in = append(in, conn)
	}
	for _, c := range in {
		l.leave(c)
	}
	storetest.Equal(t, len(l.peers), 0, "left behind", l.peers)
}
