package edge

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/valyala/fasthttp"
)

// defaultBodyBudget is the memory for all bodies under way, in bytes (D-GEN-12).
const defaultBodyBudget = 64 << 20

// firstBuffer is the memory that a body begins with, in bytes. Most bodies are
// smaller, and only buffers of this size are used again.
const firstBuffer = 4 << 10

// budget is memory that all requests share.
type budget struct {
	limit int64 // in bytes
	used  atomic.Int64
}

// take takes n bytes; false when fewer are left.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

func (b *budget) release(n int) { b.used.Add(-int64(n)) }

// body is the body of a request.
type body struct {
	announced int64  // its length in bytes; 0: none, or unknownLength
	whole     bool   // all of it was read
	text      []byte // of the budget until the request ends
}

// unknownLength is the announced length of a body that comes in chunks.
const unknownLength = -1

var firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

// onHeader runs when the head of a message has come. A body that is too large, or that no
// route accepts, is not read at all; others are read when the handler requests them.
func (s *Server) onHeader(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	originForm(h)
	announced := h.ContentLength()
	if announced == 0 || announced < unknownLength {
		return c
	}
	limit := s.limits.of(h.Method(), h.RequestURI())
	if announced > limit || limit == 0 {
		// The library reads nothing and sends no 100 Continue; the connection ends
		// after the refusal (Server.edge).
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
		return c
	}
	return c
}

// receive reads the body. Its memory grows with the bytes that have come, never
// with the length that was announced, and all of it is the budget's. A request
// whose body is still coming is not in flight.
//
// Errors: PAYLOAD_TOO_LARGE, OVERLOADED without memory, REQUEST_TIMEOUT,
// INVALID_FIELD for a body that is cut short, malformed or followed by trailers.
func (s *Server) receive(r *Request, limit int) error {
	if r.body.announced == 0 {
		return nil
	}
	if r.body.announced > int64(limit) || limit == 0 {
		return tooLarge(limit)
	}
	stream := r.fctx.RequestBodyStream()
	if stream == nil {
		return fault.New(fault.InvalidField, "malformed request")
	}
	if limit > rest.DefaultBodyLimit { // only now is the sender known
		_ = r.fctx.Conn().SetReadDeadline(time.Now().Add(largeReadTimeout))
	}
	s.leave(r)
	fields := 0
	if r.body.announced == unknownLength { // only chunks can have trailers behind them
		fields = r.fctx.Request.Header.Len()
	}
	if err := s.readAll(r, stream, limit); err != nil {
		return err
	}
	if r.body.announced == unknownLength && r.fctx.Request.Header.Len() != fields {
		return fault.New(fault.InvalidField, "trailers are not accepted")
	}
	r.body.whole = true
	return s.enter(r)
}

// readAll reads a stream into the body.
func (s *Server) readAll(r *Request, stream io.Reader, limit int) error {
	b := &r.body
	for {
		if len(b.text) == cap(b.text) && !s.grow(b, limit) {
			return fault.New(fault.Overloaded, "too many bodies are being received; try again").After(time.Second)
		}
		n, err := stream.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		switch {
		case len(b.text) > limit:
			return tooLarge(limit)
		case int64(len(b.text)) == b.announced, err == io.EOF && b.announced == unknownLength && !ended(r.fctx):
			return nil
		case err == nil:
		default:
			return r.cutShort(err)
		}
	}
}

// grow enlarges the buffer of a body: at most to twice the received bytes, and never beyond
// its limit plus one byte.
func (s *Server) grow(b *body, limit int) bool {
	if b.text == nil {
		if !s.bodies.take(firstBuffer) {
			return false
		}
		b.text = firstBuffers.Get().(*[firstBuffer]byte)[:0]
		return true
	}
	most := limit + 1
	if b.announced > 0 {
		most = int(b.announced)
	}
	size := max(min(2*cap(b.text), most), cap(b.text)+1)
	if !s.bodies.take(size - cap(b.text)) {
		return false
	}
	text := append(make([]byte, 0, size), b.text...)
	b.recycle()
	b.text = text[:len(text):size]
	return true
}

// ended reports whether the client has closed its half of the connection. The library
// takes that for the last chunk of a body.
func ended(fctx *fasthttp.RequestCtx) bool {
	c := connectionOf(fctx)
	return c != nil && c.ended
}

// release returns the memory of a body.
func (s *Server) release(b *body) {
	s.bodies.release(cap(b.text))
	b.recycle()
	*b = body{}
}

func (b *body) recycle() {
	if cap(b.text) == firstBuffer {
		firstBuffers.Put((*[firstBuffer]byte)(b.text[:firstBuffer]))
	}
}

// unread reports whether part of the body was not read: the client may still send it.
func (b *body) unread() bool { return b.announced != 0 && !b.whole }

// cutShort is the fault of a body whose reading failed. A broken connection gets no answer.
func (r *Request) cutShort(err error) error {
	var broken *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fault.New(fault.RequestTimeout, "the request did not arrive in time")
	case errors.As(err, &broken):
		if c := connectionOf(r.fctx); c != nil {
			c.mute.Store(true)
			r.gone = true
		}
	case errors.As(err, new(*fasthttp.ErrSmallBuffer)):
		return fault.New(fault.HeadersTooLarge, "the headers are larger than %d bytes", headerLimit)
	}
	return fault.New(fault.InvalidField, "malformed request")
}

func tooLarge(limit int) error {
	return fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", limit)
}
