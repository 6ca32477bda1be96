package blackbox

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
)

// Proxy sits between the service and its database and simulates network failures.
type Proxy struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	mode  Network
	tap   func() io.Writer
	open  map[net.Conn]bool
	moved chan struct{} // closed at each change of the mode
	ended bool
}

// Network is the behaviour of a Proxy.
type Network int

// The networks: a good one; one that resets every connection; one that delays everything until it is good again; one
// that silently drops everything, so that lost data never arrives.
const (
	Good Network = iota
	Resets
	Stalls
	Loses
)

func (n Network) String() string { return [...]string{"good", "resets", "stalls", "loses"}[n] }

// Behind puts a Proxy in front of the site's database, for processes that are started from now on. The site's own
// connection to the database bypasses it.
func (s *Site) Behind() *Proxy {
	s.t.Helper()
	u := storetest.Value(url.Parse(s.DSN))(s.t)
	return s.behind(NewProxy(s.t, u.Host), u)
}

// BehindOn is Behind for nodes in places of a network.
func (s *Site) BehindOn(n *Net) *Proxy {
	s.t.Helper()
	u := storetest.Value(url.Parse(s.DSN))(s.t)
	return s.behind(newProxyAt(s.t, n.Addr()+":0", u.Host), u)
}

func (s *Site) behind(p *Proxy, u *url.URL) *Proxy {
	u.Host = p.Addr()
	s.Set("DATABASE_URL=" + u.String())
	return p
}

// NewProxy returns a good one in front of an address.
func NewProxy(t testing.TB, to string) *Proxy { return newProxyAt(t, "127.0.0.1:0", to) }

// newProxyAt is NewProxy at an address.
func newProxyAt(t testing.TB, at, to string) *Proxy {
	t.Helper()
	l := storetest.Value(net.Listen("tcp", at))(t)
	p := &Proxy{to: to, l: l, open: map[net.Conn]bool{}, moved: make(chan struct{})}
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.ended = true
		close(p.moved)
		p.mu.Unlock()
		p.reset()
	})
	return p
}

// Addr returns its listening address.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Become changes the network.
func (p *Proxy) Become(n Network) {
	p.mu.Lock()
	p.mode = n
	close(p.moved)
	p.moved = make(chan struct{})
	p.mu.Unlock()
	if n == Resets {
		p.reset()
	}
}

// Tap calls open for each new connection. The writer receives the data of the service on it, before the database does.
func (p *Proxy) Tap(open func() io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tap = open
}

// tapped returns the writer of the data that the service sends to the database.
func (p *Proxy) tapped(database io.Writer) io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tap == nil {
		return database
	}
	return io.MultiWriter(p.tap(), database)
}

func (p *Proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

func (p *Proxy) now() (Network, chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.moved, p.ended
}

func (p *Proxy) track(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.track(c)
		go p.serve(c)
	}
}

func (p *Proxy) serve(c net.Conn) {
	defer p.forget(c)
	if mode, _, _ := p.now(); mode == Resets {
		c.(*net.TCPConn).SetLinger(0)
		return
	}
	d, err := net.Dial("tcp", p.to)
	if err != nil {
		c.(*net.TCPConn).SetLinger(0)
		return
	}
	p.track(d)
	defer p.forget(d)
	back := make(chan struct{})
	go func() {
		defer close(back)
		p.carry(c, d)
		c.Close()
	}()
	p.carry(p.tapped(d), c)
	d.Close()
	<-back
}

// carry copies until either side ends. After data was lost, nothing arrives.
func (p *Proxy) carry(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	lossy := false
	for {
		n, err := from.Read(buf)
		for n > 0 {
			mode, moved, ended := p.now()
			if ended {
				return
			}
			if mode == Stalls {
				<-moved
				continue
			}
			lossy = lossy || mode == Loses
			break
		}
		if err != nil {
			return
		}
		if !lossy {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}
