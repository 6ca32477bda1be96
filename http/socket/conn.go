package socket

import (
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gobwas/ws"
)

// closeCode is the status of a close frame.
type closeCode = ws.StatusCode

// The codes of D-SOCK-06 instruct the client; those of the protocol report its error.
const (
	closeExpired  closeCode = 4401 // p-auth has expired: start again
	closeGone     closeCode = 4410 // no outcome will come: start again
	closeTooMany  closeCode = 4429 // five sockets watch already
	closeRestart  closeCode = 1012 // connect again, to another node
	closeInternal closeCode = 1011
	closeTooBig             = ws.StatusMessageTooBig
	closeFlood              = ws.StatusPolicyViolation
	closeNotText            = ws.StatusInvalidFramePayloadData
	closeProtocol           = ws.StatusProtocolError
)

var reasons = map[closeCode]string{
	closeExpired: "p-auth expired", closeGone: "the challenge has ended", closeTooMany: "too many sockets",
	closeRestart: "restart", closeInternal: "internal error", closeTooBig: "frame too big", closeFlood: "too many frames",
	closeNotText: "not UTF-8", closeProtocol: "protocol error",
}

var pingFrame = ws.MustCompileFrame(ws.NewPingFrame(nil))

const (
	maxQueue  = 32   // frames that may wait for a slow reader
	maxFrames = 1024 // that a client may send between two pings
)

// conn is one socket. Nothing waits on it: its bytes come through received,
// its times through doDueWork, and its frames leave through enqueue and flush.
type conn struct {
	hub  *Hub
	room *room
	net  net.Conn
	// raw reads and writes without waiting, slot is the place in the poller;
	// nil and -1 for a connection that has a goroutine reading instead.
	raw  syscall.RawConn
	slot int32
	seen int32 // the last event that was sent; the hub's lock guards it

	in inbox // of the reader

	mu      sync.Mutex
	expires time.Time // when p-auth ends
	ping    time.Time // when the next one is due
	heard   time.Time // when the client last sent something
	frames  int       // that it has sent since the last ping
	queue   [][]byte  // encoded frames
	writing bool      // a goroutine has the duty to write the queue
	closing bool      // a close frame is queued or sent: no frame follows it
	told    bool      // the close frame is on the wire
	agreed  bool      // the client has sent its close frame
	ended   bool
}

// enqueue adds a frame, if one may still follow, and reports whether the caller has to flush.
// It never blocks: a connection whose reader is too slow ends.
func (c *conn) enqueue(frame []byte, last bool) (flush bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	if len(c.queue) >= maxQueue && !last {
		c.closing = true
		go c.end() // the caller may hold the hub's lock
		return false
	}
	c.closing = last
	c.queue = append(c.queue, frame)
	flush = !c.writing
	c.writing = true
	return flush
}

// send queues a frame and starts it on its way.
func (c *conn) send(frame []byte) {
	if c.enqueue(frame, false) {
		c.flush()
	}
}

// close sends the client the reason and ends the socket.
func (c *conn) close(code closeCode) {
	if c.enqueue(closeFrame(code, reasons[code]), true) {
		c.flush()
	}
}

func closeFrame(code closeCode, reason string) []byte {
	var body []byte
	if code != 0 {
		body = ws.NewCloseFrameBody(code, reason)
	}
	return ws.MustCompileFrame(ws.NewCloseFrame(body))
}

// flush writes what is queued: at once what fits into the connection's buffer,
// the rest in a goroutine.
func (c *conn) flush() {
	for {
		batch, more := c.next()
		if !more {
			return
		}
		if rest := c.writeNow(batch); len(rest) > 0 {
			go c.write(rest)
			return
		}
	}
}

// write is the goroutine of a connection whose client reads slowly.
func (c *conn) write(batch net.Buffers) {
	for more := true; more; batch, more = c.next() {
		c.net.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := batch.WriteTo(c.net); err != nil {
			c.end()
			return
		}
	}
}

// next takes over the queue; an empty queue ends the duty to write.
func (c *conn) next() (batch net.Buffers, more bool) {
	c.mu.Lock()
	if batch = c.queue; len(batch) > 0 {
		c.queue = nil
		c.mu.Unlock()
		return batch, true
	}
	c.writing = false
	last := c.closing && !c.ended && !c.told
	c.told = c.told || last
	agreed := c.agreed
	c.mu.Unlock()
	switch {
	case !last:
	case agreed:
		c.end()
	default: // let the client read it: a close now could reset the connection under it
		if t, ok := c.net.(interface{ CloseWrite() error }); ok {
			t.CloseWrite()
		}
		time.AfterFunc(parting, c.end)
	}
	return nil, false
}

// end closes the connection and forgets it. It may be called repeatedly, but not with a lock held.
func (c *conn) end() {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended, c.closing, c.queue = true, true, nil
	c.mu.Unlock()
	c.net.Close()
	c.hub.forget(c)
}

// received takes what the client sent. Calls must not overlap.
func (c *conn) received(p []byte) {
	c.mu.Lock()
	c.heard = c.hub.now()
	c.mu.Unlock()
	if code := c.in.take(p, c.frame); code != 0 {
		c.close(code)
	}
}

// frame reacts to one frame: most are ignored (D-SOCK-01).
func (c *conn) frame(op ws.OpCode, payload []byte) {
	c.mu.Lock()
	c.frames++
	flood := c.frames > maxFrames
	c.agreed = c.agreed || op == ws.OpClose
	told := c.told
	c.mu.Unlock()
	switch {
	case op == ws.OpClose && told:
		c.end()
	case op == ws.OpClose: // the answer repeats the code
		code, _ := ws.ParseCloseFrameData(payload)
		if c.enqueue(closeFrame(code, ""), true) {
			c.flush()
		}
	case flood:
		c.close(closeFlood)
	case op == ws.OpPing:
		c.send(ws.MustCompileFrame(ws.NewPongFrame(payload)))
	}
}

// doDueWork does the due work and returns the next instant at which work is due; false if there is none.
func (c *conn) doDueWork(now time.Time) (next time.Time, more bool) {
	c.mu.Lock()
	switch {
	case c.closing:
		c.mu.Unlock()
		return next, false
	case !now.Before(c.expires):
		c.mu.Unlock()
		c.close(closeExpired)
		return next, false
	case now.Sub(c.heard) >= patience: // half open: no peer to notify
		c.mu.Unlock()
		c.end()
		return next, false
	}
	due := !now.Before(c.ping)
	if due {
		c.ping, c.frames = now.Add(pingEvery), 0
	}
	next = earliest(c.ping, c.expires, c.heard.Add(patience))
	c.mu.Unlock()
	if due {
		c.send(pingFrame)
		c.hub.renew(c.room)
	}
	return next, true
}

func earliest(t time.Time, others ...time.Time) time.Time {
	for _, o := range others {
		if o.Before(t) {
			t = o
		}
	}
	return t
}

// readAll reads a connection that the poller does not accept.
func (c *conn) readAll() {
	buf := make([]byte, 256)
	for {
		n, err := c.net.Read(buf)
		if n > 0 {
			c.received(buf[:n])
		}
		if err != nil {
			c.end()
			return
		}
	}
}
