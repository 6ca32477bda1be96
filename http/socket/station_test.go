package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/edge"
	"castellan/http/rest"
)

// station serves sockets on a real listener. Tokens are "good <challenge>".
type station struct {
	t testing.TB
	owner
	hub    *Hub
	server *edge.Server
	addr   string
}

// settings change a station before it serves.
type settings struct {
	Options
	draining bool
	perIP    int  // connections of one address
	opaque   bool // connections do not show what they are
	buffer   int  // of the kernel, for what is sent; 0 for its own choice
}

func serve(t testing.TB, s settings) *station {
	t.Helper()
	st := &station{t: t}
	log := slog.New(slog.DiscardHandler)
	st.hub = NewHub(&st.owner, openSealed, time.Now, log)
	var err error
	if st.server, err = edge.New(edge.Options{Logger: log, Draining: func() bool { return s.draining },
		MaxConnectionsPerIP: s.perIP}, nil); err != nil {
		t.Fatal(err)
	}
	s.Hub, s.Challenge = st.hub, func(_ context.Context, who rest.Caller, raw string) (rest.Caller, error) {
		return token(who, raw)
	}
	Mount(st.server, s.Options)
	st.server.App.Server().MaxIdleWorkerDuration = 20 * time.Millisecond // so that none outlives the test
	l, err := net.Listen("tcp", "127.0.0.1:0")
	storetest.Must(t, err)
	st.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- st.server.Serve(listener{l, s}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		st.hub.Close(ctx)
		storetest.Must(t, errors.Join(st.server.App.ShutdownWithContext(ctx), <-done))
	})
	return st
}

// listener makes connections as the settings want them.
type listener struct {
	net.Listener
	settings
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil && l.buffer > 0 {
		err = c.(*net.TCPConn).SetWriteBuffer(l.buffer)
	}
	if err == nil && l.opaque {
		c = opaque{c}
	}
	return c, err
}

type opaque struct{ inner net.Conn }

func (o opaque) Read(p []byte) (int, error)         { return o.inner.Read(p) }
func (o opaque) Write(p []byte) (int, error)        { return o.inner.Write(p) }
func (o opaque) Close() error                       { return o.inner.Close() }
func (o opaque) LocalAddr() net.Addr                { return o.inner.LocalAddr() }
func (o opaque) RemoteAddr() net.Addr               { return o.inner.RemoteAddr() }
func (o opaque) SetDeadline(t time.Time) error      { return o.inner.SetDeadline(t) }
func (o opaque) SetReadDeadline(t time.Time) error  { return o.inner.SetReadDeadline(t) }
func (o opaque) SetWriteDeadline(t time.Time) error { return o.inner.SetWriteDeadline(t) }

// token stands for the guard.
func token(who rest.Caller, raw string) (rest.Caller, error) {
	word, id, _ := strings.Cut(raw, "-")
	switch word {
	case "":
		return who, fault.New(fault.Unauthenticated, "p-auth is needed")
	case "old":
		return who, fault.New(fault.TokenExpired, "the token has expired")
	case "brief":
		who.TokenExpires = time.Now().Add(time.Second)
	case "good":
		who.TokenExpires = time.Now().Add(time.Hour)
	default:
		return who, fault.New(fault.Unauthenticated, "not a token of ours")
	}
	who.ChallengeID = id
	return who, nil
}

const upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// request sends a request, followed by early bytes, and reads the answer.
func (s *station) request(target, headers string, early ...byte) (*http.Response, *peer) {
	s.t.Helper()
	c := storetest.Value(net.Dial("tcp", s.addr))(s.t)
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	line := target // the whole request line, or a path
	if strings.HasPrefix(line, "/") {
		line = "GET " + target + " HTTP/1.1"
	}
	storetest.Must(s.t, storetest.Err(c.Write(slices.Concat([]byte(line+"\r\nHost: "+s.addr+"\r\n"+headers+"\r\n"),
		early))))
	r := bufio.NewReader(c)
	answer := storetest.Value(http.ReadResponse(r, nil))(s.t)
	return answer, &peer{s.t, c, r}
}

// open opens a socket.
func (s *station) open(id string) *peer {
	s.t.Helper()
	answer, p := s.request("/2fa", upgrade+"p-auth: good-"+id+"\r\n")
	storetest.Equal(s.t, answer.StatusCode, http.StatusSwitchingProtocols, "status")
	return p
}

// peer is a client of a real connection.
type peer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// next reads one frame, in short; "end" when the connection has ended.
func (p *peer) next() string {
	p.t.Helper()
	f, err := readFrame(p.r)
	if err != nil {
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			p.t.Error(err)
		}
		return "end"
	}
	switch f.Header.OpCode {
	case ws.OpText:
		return short(p.t, f.Payload)
	case ws.OpClose:
		code, _ := ws.ParseCloseFrameData(f.Payload)
		p.conn.Write(closing(code, ""))
		return fmt.Sprintf("close %d", code)
	}
	return fmt.Sprintf("%d %s", f.Header.OpCode, f.Payload)
}

func (p *peer) want(what ...string) {
	p.t.Helper()
	for _, w := range what {
		if got := p.next(); got != w {
			p.t.Errorf("got %q, want %q", got, w)
			return
		}
	}
}

func (p *peer) send(frames ...[]byte) {
	p.t.Helper()
	storetest.Is(p.t, storetest.Err(p.conn.Write(slices.Concat(frames...))), nil)
}

// wait polls for what other goroutines bring about.
func (s *station) wait(for_ func() bool) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); !for_(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("it did not come about")
		}
	}
}
