package edge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

const (
	holdRequest = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"
	xRequest    = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
)

// held is an endpoint that answers on a signal, or when its test ends.
type held struct{ entered, end chan struct{} }

func hold(t testing.TB) (held, rest.Endpoint) {
	h := held{make(chan struct{}, 1000), make(chan struct{})}
	return h, rest.Get("/hold", "", rest.NoAuth, func(context.Context, rest.Caller, rest.None) (rest.None, error) {
		h.entered <- struct{}{}
		select {
		case <-h.end:
		case <-t.Context().Done():
		}
		return rest.None{}, nil
	})
}

// wait returns when one more request is held.
func (h held) wait(t testing.TB) {
	t.Helper()
	select {
	case <-h.entered:
	case <-time.After(10 * time.Second):
		t.Fatal("after ten seconds: the request is not held")
	}
}

// TestTooManyConnections: the one too many hears so in the one shape, with the
// time to come again; the others are served on, and a place that is given up is
// free.
func TestTooManyConnections(t *testing.T) {
	const most = 20
	opts := allow()
	opts.MaxConnections = most
	release, waits := hold(t)
	addr := listen(t, serve(t, opts, waits, rest.Get("/x", "", rest.NoAuth, nothing)))
	var busy []net.Conn
	for range most {
		c := dial(t, addr)
		io.WriteString(c, holdRequest)
		release.wait(t)
		busy = append(busy, c)
	}
	var all sync.WaitGroup
	for i := range 3 * most {
		all.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(10 * time.Second))
			if i%2 == 0 { // whether it speaks or only listens
				io.WriteString(c, xRequest)
			}
			text, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("%v after %q", err, text)
				return
			}
			if a := parsed(t, string(text)); a.status != 503 || a.code() != string(fault.Overloaded) ||
				a.header.Get("Retry-After") != "1" {
				t.Errorf("%d %v %s", a.status, a.header, a.body)
			}
		})
	}
	all.Wait()
	busy[0].Close()
	close(release.end)
	for i, c := range busy[1:] {
		answered(t, c).is(t, 200, "", "connection", i)
	}
	for range 2 * most {
		c := dial(t, addr)
		io.WriteString(c, xRequest)
		answered(t, c).is(t, 200, "", "a place that was given up")
	}
}

// isLast says whether the connection of a client is the one that became idle last.
func (i *idleList) isLast(client string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.last != nil && i.last.RemoteAddr().String() == client
}

// TestLongestIdleMakesRoom: when all places are taken the connection that has waited
// longest for a request is closed for the new one, and none that is served
// (D-GEN-22).
func TestLongestIdleMakesRoom(t *testing.T) {
	opts := allow()
	opts.MaxConnections = 3
	release, waits := hold(t)
	tcp := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := serve(t, opts, waits, rest.Get("/x", "", rest.NoAuth, nothing))
	l, addr := newListener(tcp, s), tcp.Addr().String()
	go s.App.Listener(l)
	t.Cleanup(func() { s.App.Shutdown() })
	ask := func(c net.Conn) {
		t.Helper()
		io.WriteString(c, xRequest)
		answered(t, c).is(t, 200, "")
		until(t, "waiting last", func() bool { return l.idle.isLast(c.LocalAddr().String()) })
	}
	busy, first, second := dial(t, addr), dial(t, addr), dial(t, addr)
	io.WriteString(busy, holdRequest)
	release.wait(t)
	ask(first)
	ask(second)
	ask(first) // now second has waited longest
	ask(dial(t, addr))
	storetest.Equal(t, receive(t, second), "", "the longest idle one got")
	ask(first)
	close(release.end)
	answered(t, busy).is(t, 200, "", "the busy one")
}

// TestHealthBeyondTheLimit: a health check is served when every place is taken, once
// on its connection.
func TestHealthBeyondTheLimit(t *testing.T) {
	opts := allow()
	opts.MaxConnections, opts.BasePath = 1, "/auth"
	release, waits := hold(t)
	waits.Path = "/hold"
	s := serve(t, opts, waits)
	s.Raw("GET", "/health/live", func(c *fiber.Ctx) error { return c.SendString("alive") })
	addr := listen(t, s)
	busy := dial(t, addr)
	io.WriteString(busy, strings.Replace(holdRequest, "/hold", "/auth/hold", 1))
	release.wait(t)
	defer close(release.end)
	const check = "GET /auth/health/live HTTP/1.1\r\nHost: a\r\n\r\n"
	for range 2 * healthPlaces {
		c := dial(t, addr)
		io.WriteString(c, check+check)
		if text := receive(t, c); strings.Count(text, "HTTP/1.1 ") != 1 || !strings.HasPrefix(text, "HTTP/1.1 200") ||
			!strings.HasSuffix(text, "alive") {
			t.Fatalf("%q", text)
		}
		c.Close()
	}
	c := dial(t, addr)
	io.WriteString(c, "GET /auth/healthy HTTP/1.1\r\nHost: a\r\n\r\n")
	parsed(t, receive(t, c)).is(t, 503, "OVERLOADED")
}

// ill fails a set number of times before it accepts.
type ill struct {
	net.Listener
	errs  chan error
	calls atomic.Int64
}

func (l *ill) Accept() (net.Conn, error) {
	l.calls.Add(1)
	select {
	case err := <-l.errs:
		return nil, err
	default:
		return l.Listener.Accept()
	}
}

// TestAcceptGoesOn: no error of Accept ends the service but that of a closed
// listener, and none keeps a processor busy.
func TestAcceptGoesOn(t *testing.T) {
	ln := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &ill{Listener: ln, errs: make(chan error, 10)}
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ECONNABORTED, syscall.ENOBUFS, syscall.EPERM,
		errors.New("odd")} {
		l.errs <- &net.OpError{Op: "accept", Err: err}
	}
	var log bytes.Buffer
	opts := allow()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, opts, rest.Get("/x", "", rest.NoAuth, nothing))
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- s.Serve(l) }()
	c := dial(t, ln.Addr().String())
	io.WriteString(c, xRequest)
	answered(t, c).is(t, 200, "")
	if took := time.Since(began); took < 6*shortestPause {
		t.Errorf("six errors took %v", took)
	}
	c.Close()
	storetest.Must(t, s.App.Shutdown())
	<-done
	storetest.Equal(t, strings.Count(log.String(), "could not be accepted"), 1, "told", "times")
}

// TestNoDescriptors: where the process has no descriptor left, the connection that
// waits longest makes room, and the service goes on.
func TestNoDescriptors(t *testing.T) {
	s := serve(t, allow(), rest.Get("/x", "", rest.NoAuth, nothing))
	addr := listen(t, s)
	var old syscall.Rlimit
	storetest.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	low := old
	low.Cur = 200
	storetest.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	var clients []net.Conn
	for {
		c, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			break
		}
		clients = append(clients, c)
	}
	time.Sleep(100 * time.Millisecond)
	storetest.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	for _, c := range clients {
		c.Close()
	}
	c := dial(t, addr)
	io.WriteString(c, xRequest)
	if a := answered(t, c); a.status != 200 || len(clients) < 50 {
		t.Errorf("%d after %d clients", a.status, len(clients))
	}
}

// TestClamp: connections leave descriptors for the rest of the process.
func TestClamp(t *testing.T) {
	for files, want := range map[uint64]int{64: 32, 1024: 512, 4096: 4096 - filesReserved, 1 << 20: 1<<20 - filesReserved,
		1<<64 - 1: 1<<30 - filesReserved} {
		storetest.Equal(t, connectionsFor(files), want, files, "descriptors", "connections")
	}
	var log bytes.Buffer
	opts := allow()
	opts.Logger, opts.MaxConnections = slog.New(slog.NewTextHandler(&log, nil)), 1<<30
	if s := serve(t, opts); s.opts.MaxConnections >= 1<<30 || !strings.Contains(log.String(), "max_connections") {
		t.Errorf("%d connections, %q", s.opts.MaxConnections, log.String())
	}
}

// TestSlowReaders: a client that does not read an answer occupies little memory and gets no
// answer to its next requests. It loses its connection and the waiting bytes.
func TestSlowReaders(t *testing.T) {
	const size = 4 << 20
	var ran atomic.Int64
	within := func(timeout time.Duration) (*Server, string) {
		s := serve(t, allow(), rest.Get("/big", "", rest.NoAuth, func(context.Context, rest.Caller,
			rest.None) (rest.Reply[rest.None], error) {
			ran.Add(1)
			return rest.Reply[rest.None]{Raw: make([]byte, size), ContentType: "text/plain"}, nil
		}))
		s.App.Server().WriteTimeout = timeout
		return s, listen(t, s)
	}
	s, addr := within(300 * time.Millisecond)
	c := dial(t, addr).(*net.TCPConn)
	c.SetReadBuffer(4 << 10)
	io.WriteString(c, strings.Repeat("GET /big HTTP/1.1\r\nHost: a\r\n\r\n", 20))
	until(t, "the first one served", func() bool { return ran.Load() > 0 })
	until(t, "cut off", func() bool { return s.App.Server().GetOpenConnectionsCount() == 0 })
	storetest.Equal(t, ran.Load(), 1, "requests were served to a client that read none of their answers")
	got, err := io.Copy(io.Discard, c)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
	if kept := int64(512 << 10); got > kept {
		t.Errorf("%d bytes were kept for the client, want at most %d", got, kept)
	}
	// A client that reads gets all.
	_, addr = within(10 * time.Second)
	c = dial(t, addr).(*net.TCPConn)
	io.WriteString(c, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	resp := storetest.Value(http.ReadResponse(bufio.NewReader(c), nil))(t)
	if n, err := io.Copy(io.Discard, resp.Body); n != size || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

// TestAbsoluteForm: a target in absolute form is its path, and its authority is the
// Host (RFC 9112, section 3.2.2).
func TestAbsoluteForm(t *testing.T) {
	opts := allow()
	s := serve(t, opts, rest.Get("/x/{id}", "", rest.NoAuth, func(_ context.Context, who rest.Caller,
		in rest.ByID) (rest.Data[string], error) {
		return rest.Data[string]{Data: fmt.Sprint(who.Path, " ", in.ID, " ", who.RawQuery)}, nil
	}), rest.Post("/x", "", rest.NoAuth, echo))
	s.Raw("GET", "/host", func(c *fiber.Ctx) error {
		return c.SendString(RequestOf(c).Header("Host") + " " +
			c.Hostname())
	})
	addr := listen(t, s)
	for _, c := range []struct{ line, want string }{
		{"GET http://id.example.com/x/7?q=1", "200 /x/7 7 q=1"}, {"GET HTTPS://id.example.com:8443/x/7", "200 /x/7 7"},
		{"GET http://id.example.com:80/host", "200 id.example.com:80 id.example.com:80"}, {"GET http://[::1]:80/host",
			"200 [::1]:80"},
		{"GET http://id.example.com", "404"}, {"GET http://id.example.com?x=1", "404"},
		{"GET http://id.example.com//x/7", "404"},
		{"GET http://id.example.com/x/%37", "404"}, {"GET http://id.example.com/x/../x/7",
			"404"}, {"GET http://id.example.com/x/7#f", "400"},
		{"GET http:///x/7", "400"}, {"GET http://u:p@id.example.com/x/7", "400"}, {"GET ftp://id.example.com/x/7",
			"400"}, {"GET http:/x/7", "400"},
		{"GET id.example.com/x/7", "400"}, {"GET http://a b/x/7", "400"}, {"CONNECT http://id.example.com/x/7", "405"},
	} {
		answers, _ := wire(t, addr, c.line+" HTTP/1.1\r\nHost: other.example\r\n\r\n", 1)
		if len(answers) != 1 {
			t.Errorf("%s: no answer", c.line)
		} else if got := fmt.Sprint(answers[0].status, " ", strings.NewReplacer(`{"data":"`, "", `"}`,
			"").Replace(answers[0].body)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
	text := `{"text":"x"}`
	answers, _ := wire(t, addr, strings.Replace(announce("/x", len(text)), "/x", "http://id.example.com/x",
		1)+text+xRequest, 2)
	if len(answers) != 2 || answers[0].status != 200 || answers[1].status != 405 {
		t.Errorf("a body: %+v", answers)
	}
}
