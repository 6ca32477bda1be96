package edge

import (
	"bytes"
	"strconv"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/http/rest"

	"github.com/valyala/fasthttp"
)

const (
	// turningAway bounds the connections beyond the limit that get an answer.
	turningAway = 256
	// healthPlaces are kept for the health checks that come on such connections.
	healthPlaces = 32
)

// refuseConnection refuses a connection. If health is true and its first request is a health check, it
// serves that request. It runs concurrently: no connection waits for the end of another.
func (l *listener) refuseConnection(c *connection, health bool) {
	select {
	case l.turned <- struct{}{}:
	default:
		c.Close()
		return
	}
	go func() {
		defer func() { <-l.turned }()
		defer c.Close()
		if c.SetReadDeadline(time.Now().Add(lingerIdle)) == nil {
			head := make([]byte, headerLimit)
			n, _ := c.Read(head)
			c.begun = head[:n]
		}
		if health && l.srv.asksForHealth(c.begun) && l.serveHealth(c) {
			return
		}
		a := l.srv.tooMany()
		l.srv.cors.refuse(c, &a.Header)
		c.SetWriteDeadline(time.Now().Add(lingerTime))
		if _, err := a.WriteTo(c); err == nil {
			c.linger.Store(true)
		}
	}()
}

// serveHealth serves one request; false when all places are taken.
func (l *listener) serveHealth(c *connection) bool {
	select {
	case l.health <- struct{}{}:
	default:
		return false
	}
	defer func() { <-l.health }()
	c.once = true
	return l.srv.App.Server().ServeConn(c) != fasthttp.ErrConcurrencyLimit
}

// asksForHealth reports whether a head begins a health check.
func (s *Server) asksForHealth(head []byte) bool {
	method, target, _ := bytes.Cut(head, []byte(" "))
	return (string(method) == "GET" || string(method) == "HEAD") &&
		bytes.HasPrefix(target, []byte(s.opts.BasePath+healthPath))
}

// tooMany is the answer to a connection that is not served.
func (s *Server) tooMany() *fasthttp.Response {
	f := fault.New(fault.Overloaded, "too many connections are open; try again")
	requestID := id.New(s.opts.Now())
	status, body := rest.Problem(f, s.opts.DefaultLanguage, requestID)
	a := new(fasthttp.Response)
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
