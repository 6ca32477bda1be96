package edge

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"castellan/domain/kit/client"

	"github.com/valyala/fasthttp"
)

// Serve accepts connections until the listener is closed; no other error ends it. At
// most Options.MaxConnections are served at once, and Options.MaxConnectionsPerIP of
// one peer; others are answered 503 OVERLOADED (D-GEN-22). Sockets count until they
// are closed.
func (s *Server) Serve(l net.Listener) error {
	s.App.Handler() // completes the routes. App.Listener would do so too, but it links a banner and a table of routes.
	return s.App.Server().Serve(newListener(l, s))
}

// listener counts connections and wraps each so that it can end without losing an answer.
type listener struct {
	net.Listener
	srv     *Server
	closing chan struct{}
	close   func() error
	idle    idleList
	turned  chan struct{} // a place for each connection that is being turned away
	health  chan struct{} // of these, a place for each health check
	news    [3]rateLimitedLog

	mu    sync.Mutex
	open  int            // connections that are served
	peers map[string]int // of these, those of a peer, where they are bounded
}

func newListener(l net.Listener, s *Server) *listener {
	closing := make(chan struct{})
	return &listener{Listener: l, srv: s, closing: closing, peers: map[string]int{},
		turned: make(chan struct{}, turningAway), health: make(chan struct{}, healthPlaces),
		close: sync.OnceValue(func() error { close(closing); return l.Close() })}
}

// Accept fails only when the listener is closed: missing descriptors come back when clients leave.
func (l *listener) Accept() (net.Conn, error) {
	for pause := time.Duration(0); ; {
		c, err := l.Listener.Accept()
		if err != nil {
			if l.isClosed() || errors.Is(err, net.ErrClosed) {
				return nil, err
			}
			pause = l.wait(err, pause)
			continue
		}
		pause = 0
		tcp, ok := c.(*net.TCPConn)
		if !ok {
			return c, nil
		}
		conn := &connection{TCPConn: tcp, from: l}
		switch {
		case !l.enter(conn, peerOf(tcp.RemoteAddr())):
			l.news[1].warn(l.srv.opts.Logger, "connections beyond the limit of one address are refused",
				slog.Int("limit", l.srv.opts.MaxConnectionsPerIP), slog.String("peer", tcp.RemoteAddr().String()))
			l.refuseConnection(conn, false)
		case !l.admit(conn):
			l.news[0].warn(l.srv.opts.Logger, "connections beyond the limit are refused",
				slog.Int("limit", l.srv.opts.MaxConnections), slog.String("peer", tcp.RemoteAddr().String()))
			l.refuseConnection(conn, true)
		default:
			conn.limitSending(l.srv.App.Server().WriteTimeout)
			return conn, nil
		}
	}
}

// The pause after an error of Accept, which doubles from one to the next.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 250 * time.Millisecond
)

// wait frees a descriptor if they are exhausted, otherwise pauses, and returns the length of the pause.
func (l *listener) wait(err error, last time.Duration) time.Duration {
	l.news[2].warn(l.srv.opts.Logger, "a connection could not be accepted", slog.Any("err", err))
	if (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.closeIdle() {
		return 0
	}
	pause := min(max(2*last, shortestPause), longestPause)
	select {
	case <-l.closing:
	case <-time.After(pause):
	}
	return pause
}

// enter counts a connection against its peer, unless the peer has too many.
func (l *listener) enter(c *connection, ip netip.Addr) bool {
	peer := client.Prefix(ip)
	most := l.srv.opts.MaxConnectionsPerIP
	if most == 0 || peer == "" { // unbounded, or without a known peer
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers[peer] >= most {
		return false
	}
	l.peers[peer]++
	c.peer = peer
	return true
}

// admit gives a connection a place, if necessary the place of the longest idle connection.
func (l *listener) admit(c *connection) bool {
	most := l.srv.opts.MaxConnections
	for {
		l.mu.Lock()
		if most == 0 || l.open < most {
			l.open++
			l.mu.Unlock()
			c.placed = true
			l.idle.add(c)
			return true
		}
		l.mu.Unlock()
		if !l.closeIdle() {
			return false
		}
	}
}

// closeIdle closes the longest idle connection; false if none is idle.
func (l *listener) closeIdle() bool {
	c := l.idle.takeOldest()
	if c == nil {
		return false
	}
	c.Close()
	return true
}

// leave undoes what enter and admit counted.
func (l *listener) leave(c *connection) {
	l.idle.remove(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.placed {
		l.open--
	}
	if c.peer == "" {
		return
	}
	if l.peers[c.peer]--; l.peers[c.peer] == 0 {
		delete(l.peers, c.peer)
	}
}

// Close also ends the lingering of connections, because the shutdown of the server waits for them.
func (l *listener) Close() error { return l.close() }

func (l *listener) isClosed() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// onState learns from the library which connections wait for a request.
func onState(nc net.Conn, state fasthttp.ConnState) {
	c, ok := nc.(*connection)
	switch {
	case !ok:
	case state == fasthttp.StateIdle:
		c.from.idle.add(c)
	case state == fasthttp.StateActive && c.spoke.Load(): // the first time it says so before a byte has come
		c.from.idle.remove(c)
	}
}

// idleList is the connections that wait for a request, the longest idle first.
type idleList struct {
	mu          sync.Mutex
	first, last *connection
}

// add makes a connection the one that became idle last.
func (i *idleList) add(c *connection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.idle || !c.placed || c.closed.Load() {
		return
	}
	c.idle, c.before, c.after = true, i.last, nil
	if i.last == nil {
		i.first = c
	} else {
		i.last.after = c
	}
	i.last = c
}

func (i *idleList) remove(c *connection) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unlink(c)
}

// takeOldest removes the connection that has been idle longest; nil when none is.
func (i *idleList) takeOldest() *connection {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := i.first
	if c != nil {
		i.unlink(c)
	}
	return c
}

func (i *idleList) unlink(c *connection) {
	if !c.idle {
		return
	}
	if c.before == nil {
		i.first = c.after
	} else {
		c.before.after = c.after
	}
	if c.after == nil {
		i.last = c.before
	} else {
		c.after.before = c.before
	}
	c.idle, c.before, c.after = false, nil, nil
}

// sameLineEvery is the shortest time between equal lines in the log.
const sameLineEvery = time.Minute

// rateLimitedLog limits how often the same line is logged.
type rateLimitedLog struct {
	every time.Duration // 0: sameLineEvery
	mu    sync.Mutex
	told  time.Time
}

func (n *rateLimitedLog) warn(log *slog.Logger, text string, attrs ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.Sub(n.told) >= cmp.Or(n.every, sameLineEvery) {
		n.told = now
		log.Warn(text, attrs...)
	}
}
