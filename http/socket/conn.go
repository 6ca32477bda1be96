package socket

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
)

// closeCode is a status of a close frame.
type closeCode = ws.StatusCode

// The codes of D-SOCK-06, and what each tells the client to do.
const (
	closeExpired  closeCode = 4401 // p-auth has ended: start again
	closeGone     closeCode = 4410 // no outcome will come: start again
	closeTooMany  closeCode = 4429 // five sockets watch already
	closeRestart  closeCode = 1012 // connect again, to another node
	closeInternal closeCode = 1011
	closeTooBig   closeCode = ws.StatusMessageTooBig
	closeProtocol closeCode = ws.StatusProtocolError
	closeNormal   closeCode = ws.StatusNormalClosure
)

var reasons = map[closeCode]string{
	closeExpired: "p-auth expired", closeGone: "the challenge has ended", closeTooMany: "too many sockets", closeRestart: "restart",
	closeInternal: "internal error", closeTooBig: "frame too big", closeProtocol: "protocol error",
}

const (
	maxFrame = 1 << 10 // client frames are ignored; a larger one is refused
	maxQueue = 32      // frames that may wait for a slow reader
)

// conn is one socket.
type conn struct {
	net     net.Conn
	expires time.Time
	ping    time.Time // when the next one is due
	seen    atomic.Int32

	mu      sync.Mutex
	queue   [][]byte // encoded frames
	writing bool
	closing bool // a close frame is queued or written: nothing follows it
}

// send queues a text frame.
func (c *conn) send(text []byte) { c.enqueue(ws.MustCompileFrame(ws.NewTextFrame(text)), false) }

// close queues the close frame; once it is written the connection ends.
func (c *conn) close(code closeCode) {
	c.enqueue(ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, reasons[code]))), true)
}

// enqueue never blocks: what a slow reader does not take in time ends its
// connection. A writer goroutine exists only while there is something to write.
func (c *conn) enqueue(frame []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	if len(c.queue) >= maxQueue && !last {
		c.closing = true
		c.net.Close()
		return
	}
	c.closing = last
	c.queue = append(c.queue, frame)
	if !c.writing {
		c.writing = true
		go c.write()
	}
}

func (c *conn) write() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue, c.writing = nil, false
			end := c.closing
			c.mu.Unlock()
			if end {
				c.hangUp()
			}
			return
		}
		frame := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.net.SetWriteDeadline(time.Now().Add(writeTime))
		if _, err := c.net.Write(frame); err != nil {
			c.net.Close()
			c.mu.Lock()
			c.queue, c.writing, c.closing = nil, false, true
			c.mu.Unlock()
			return
		}
	}
}

// hangUp ends our side after a close frame; the reader waits a moment for the
// other side's, so that the frame is not lost in a reset.
func (c *conn) hangUp() {
	if t, ok := c.net.(interface{ CloseWrite() error }); ok {
		t.CloseWrite()
	}
	c.net.SetReadDeadline(time.Now().Add(time.Second))
}

// tend does what time asks for.
func (c *conn) tend(now time.Time) {
	if !now.Before(c.expires) {
		c.close(closeExpired)
	} else if !now.Before(c.ping) {
		c.ping = now.Add(pingEvery)
		c.enqueue(pingFrame, false)
	}
}

var pingFrame = ws.MustCompileFrame(ws.NewPingFrame(nil))

// read takes frames until the connection ends. What a client sends is ignored,
// pings and its close apart.
func (c *conn) read() {
	for {
		h, err := ws.ReadHeader(c.net)
		if err != nil {
			return
		}
		switch {
		case !h.Masked || h.Rsv != 0 || h.OpCode.IsReserved() || h.OpCode.IsControl() && (!h.Fin || h.Length > ws.MaxControlFramePayloadSize):
			c.refuse(closeProtocol)
			return
		case h.Length > maxFrame:
			c.refuse(closeTooBig)
			return
		}
		p := make([]byte, h.Length) // pongs are empty, and hardly anything else comes
		if _, err := io.ReadFull(c.net, p); err != nil {
			return
		}
		switch h.OpCode {
		case ws.OpClose:
			c.refuse(closeNormal)
			return
		case ws.OpPing:
			ws.Cipher(p, h.Mask, 0)
			c.enqueue(ws.MustCompileFrame(ws.NewPongFrame(p)), false)
		}
		c.mu.Lock()
		closing := c.closing
		c.mu.Unlock()
		if !closing { // a closing one keeps its short patience
			c.net.SetReadDeadline(time.Now().Add(readPatience))
		}
	}
}

// refuse writes a close frame and gives the other side a moment to read it.
func (c *conn) refuse(code closeCode) {
	c.close(code)
	c.net.SetReadDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, io.LimitReader(c.net, 1<<16))
}
