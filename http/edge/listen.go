package edge

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"castellan/domain/client"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/http/rest"

	"github.com/valyala/fasthttp"
)

// How a connection ends that is closed while its client may still be sending:
// a close with unread bytes is a reset, which can take the answer away from
// whoever was about to read it. So the answer's end is announced, and what
// comes is read and dropped for a moment: as much as a client may send in good
// faith, no longer than a request may take to arrive.
const (
	lingerTime  = 2 * time.Second
	lingerIdle  = 500 * time.Millisecond // without a byte
	lingerBytes = 32 << 20               // above every body limit
	// turningAway bounds the connections beyond the limit that are given a word.
	turningAway = 256
	turnedEvery = time.Minute // one line in the log
)

// Serve accepts connections until the listener is closed. At most
// Options.MaxConnections are open at once, and Options.MaxConnectionsPerIP of one
// peer; others are answered 503 OVERLOADED. Sockets count until they are closed.
func (s *Server) Serve(l net.Listener) error {
	return s.App.Listener(&listener{Listener: l, srv: s, turned: make(chan struct{}, turningAway), peers: map[string]int{}})
}

// listener counts connections and gives each what it takes to end well.
type listener struct {
	net.Listener
	srv    *Server
	open   atomic.Int64
	closed atomic.Bool
	turned chan struct{}
	told   [2]time.Time // of the accepting goroutine: of all, of a peer

	mu    sync.Mutex
	peers map[string]int // connections, where those of a peer are bounded
}

// left reports whether the client has ended the connection, or its half of it.
func left(fctx *fasthttp.RequestCtx) bool {
	c := connectionOf(fctx)
	if c == nil {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = err == nil && n == 0 || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return ended || err != nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		conn := &connection{TCPConn: tcp, from: l}
		switch n := l.open.Add(1); {
		case l.srv.opts.MaxConnections > 0 && n > int64(l.srv.opts.MaxConnections):
			l.turnAway(conn, &l.told[0], "connections beyond the limit are turned away", l.srv.opts.MaxConnections)
		case l.srv.opts.MaxConnectionsPerIP > 0 && !l.enter(conn, peerOf(tcp.RemoteAddr())):
			l.turnAway(conn, &l.told[1], "connections beyond the limit of one address are turned away", l.srv.opts.MaxConnectionsPerIP)
		default:
			return conn, nil
		}
	}
}

// enter counts a connection against its peer, unless that has too many.
func (l *listener) enter(c *connection, ip netip.Addr) bool {
	peer := client.Prefix(ip)
	if peer == "" { // nobody to count it against
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers[peer] >= l.srv.opts.MaxConnectionsPerIP {
		return false
	}
	l.peers[peer]++
	c.peer = peer
	return true
}

// leave undoes what enter and Accept counted.
func (l *listener) leave(c *connection) {
	l.open.Add(-1)
	if c.peer == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers[c.peer]--; l.peers[c.peer] == 0 {
		delete(l.peers, c.peer)
	}
}

// Close implements net.Listener. From then on nobody lingers: whoever shuts the
// server down waits for its connections.
func (l *listener) Close() error {
	l.closed.Store(true)
	return l.Listener.Close()
}

// turnAway refuses a connection without letting it wait for another's end, and
// without letting the others wait for it.
func (l *listener) turnAway(c *connection, told *time.Time, news string, limit int) {
	if now := time.Now(); now.Sub(*told) >= turnedEvery {
		*told = now
		l.srv.opts.Logger.Warn(news, slog.Int("limit", limit), slog.String("peer", c.RemoteAddr().String()))
	}
	select {
	case l.turned <- struct{}{}:
	default:
		c.Close()
		return
	}
	go func() {
		defer func() { <-l.turned }()
		defer c.Close()
		a := l.srv.tooMany()
		if l.srv.cors.used() && c.SetReadDeadline(time.Now().Add(lingerIdle)) == nil {
			buf := drains.Get().(*[32 << 10]byte)
			c.Read(buf[:headerLimit]) // for who is asking
			drains.Put(buf)
			l.srv.cors.refuse(c, &a.Header)
		}
		c.SetWriteDeadline(time.Now().Add(lingerTime))
		if a.Write(c) == nil {
			c.linger.Store(true)
		}
	}()
}

// tooMany is the answer to a connection that is not served.
func (s *Server) tooMany() *answerTo {
	f := fault.New(fault.Overloaded, "too many connections are open; try again")
	requestID := id.New(s.opts.Now())
	status, body := rest.Problem(f, s.opts.DefaultLanguage, requestID)
	a := new(answerTo)
	a.SetStatusCode(status)
	for _, h := range s.fixed {
		a.Header.SetCanonical(h[0], h[1])
	}
	a.Header.Set("X-Request-Id", requestID)
	a.Header.Set("Retry-After", strconv.Itoa(rest.RetryAfter(f)))
	a.Header.SetContentType(rest.TypeProblem)
	a.SetConnectionClose()
	a.SetBody(body)
	return a
}

// answerTo is an answer that no request asked for.
type answerTo struct{ fasthttp.Response }

// Write sends the answer in one piece.
func (a *answerTo) Write(c net.Conn) error {
	_, err := a.WriteTo(c)
	return err
}

// connection is a connection of a client as the server sees it.
type connection struct {
	*net.TCPConn
	from   *listener
	peer   string      // that it counts against; of the accepting goroutine, then of Close
	origin string      // named lately; of the reading goroutine
	ended  bool        // the client sends no more; of the reading goroutine
	spoke  atomic.Bool // a byte has come
	mute   atomic.Bool // nothing is written any more: there is nobody to read it
	linger atomic.Bool
	closed atomic.Bool
}

// connectionOf is the connection of a request; nil where the server was given
// another kind than TCP.
func connectionOf(fctx *fasthttp.RequestCtx) *connection {
	c, _ := fctx.Conn().(*connection)
	return c
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
	}
	c.ended = err == io.EOF
	if s := c.from.srv; s.cors.used() {
		c.origin = s.cors.seen(b[:n], c.origin)
	}
	return n, err
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	return c.TCPConn.Write(b)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	defer c.from.leave(c)
	if c.linger.Load() && !c.mute.Load() {
		c.drain()
	}
	return c.TCPConn.Close()
}

var drains = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// drain announces the end of what is sent, and reads until the client's.
func (c *connection) drain() {
	if c.CloseWrite() != nil {
		return
	}
	buf := drains.Get().(*[32 << 10]byte)
	defer drains.Put(buf)
	end := time.Now().Add(lingerTime)
	for total := 0; total < lingerBytes && !c.from.closed.Load(); {
		until := time.Now().Add(lingerIdle)
		if until.After(end) {
			until = end
		}
		if c.SetReadDeadline(until) != nil {
			return
		}
		n, err := c.TCPConn.Read(buf[:])
		if err != nil {
			return
		}
		total += n
	}
}

// endWell has a connection closed after the answer without taking the answer
// away.
func endWell(fctx *fasthttp.RequestCtx) {
	fctx.SetConnectionClose()
	if c := connectionOf(fctx); c != nil {
		c.linger.Store(true)
	}
}
