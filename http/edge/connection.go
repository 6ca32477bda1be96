package edge

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A close with unread bytes is a reset, which can destroy the answer before the client reads
// it. So the server announces the end of the answer, and reads and drops what the client still
// sends. Bytes and time are bounded: as much as a client may send in good faith, no longer
// than a request may take to arrive.
const (
	lingerTime  = 2 * time.Second
	lingerIdle  = 500 * time.Millisecond // without a byte
	lingerBytes = 32 << 20               // above every body limit
)

// connection is a connection of a client as the server sees it.
type connection struct {
	*net.TCPConn
	from   *listener
	peer   string      // that it counts against; of the accepting goroutine, then of Close
	placed bool        // it counts against MaxConnections; like peer
	begun  []byte      // bytes read before the library reads; like ended
	once   bool        // it serves one request; like peer
	origin string      // named lately; like ended
	ended  bool        // the client sends no more; of the reading goroutine
	spoke  atomic.Bool // a byte has come
	mute   atomic.Bool // no more writes: the client is gone
	linger atomic.Bool
	closed atomic.Bool

	// of the list of idle connections
	idle          bool
	before, after *connection
}

// connectionOf is the connection of a request; nil where the server was given
// another kind than TCP.
func connectionOf(fctx *fasthttp.RequestCtx) *connection {
	c, _ := fctx.Conn().(*connection)
	return c
}

func (c *connection) Read(b []byte) (n int, err error) {
	if len(c.begun) > 0 {
		n = copy(b, c.begun)
		c.begun = c.begun[n:]
	} else {
		n, err = c.TCPConn.Read(b)
		c.ended = err == io.EOF
	}
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
		c.from.idle.remove(c)
	}
	if s := c.from.srv; s.cors.used() {
		c.origin = s.cors.seen(b[:n], c.origin)
	}
	return n, err
}

// Write resets the connection if the client does not take the bytes before the deadline.
func (c *connection) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	n, err := c.TCPConn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.linger.Store(false)
		c.SetLinger(0)
	}
	return n, err
}

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

// drain announces the end of the answer, and reads until the client ends its half.
func (c *connection) drain() {
	if c.CloseWrite() != nil {
		return
	}
	buf := drains.Get().(*[32 << 10]byte)
	defer drains.Put(buf)
	end := time.Now().Add(lingerTime)
	for total := 0; total < lingerBytes && !c.from.isClosed(); {
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

// endWell closes a connection after the answer without losing the answer.
func endWell(fctx *fasthttp.RequestCtx) {
	fctx.SetConnectionClose()
	if c := connectionOf(fctx); c != nil {
		c.linger.Store(true)
	}
}

// clientLeft reports whether the client has ended the connection, or its half of it.
func clientLeft(fctx *fasthttp.RequestCtx) bool {
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
