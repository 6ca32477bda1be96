// Package edge is the HTTP server of the public interface: it accepts connections, refuses
// malformed messages, and serves a table of endpoints (package rest). Handlers and hooks never
// see a refused message.
//
// The one idea: the cheap check comes first, and the server pays nothing for a client
// that has not passed it. The firewall also counts a request that is refused before
// its route is known.
//
// Start reading at Server (the order of checks, D-GEN-19). Then read listen.go (connections),
// edge.go (the form of HTTP messages, SEC-30, 31, 34), request.go (the request of a hook) and
// serve.go (one endpoint).
package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/textproto"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Server serves a table of endpoints. The checks of a request, in this order (D-GEN-19): form
// of the message, draining and overload, spelling of the target, preflight, route, body size
// and coding, firewall. Then: credential, authorization, content type and fields, idempotency,
// one-time code, handler.
type Server struct {
	// App is the Fiber application, for listening and for shutting down. Routes
	// are added through New and Raw alone, so that each passes the checks above.
	App *fiber.App

	opts          Options
	cors          cors
	index         Index
	countryHeader string                 // in the canonical spelling of a received header
	countries     rateLimitedLog         // of a proxy whose header comes twice
	forwards      rateLimitedLog         // of a proxy whose address of a client cannot be read
	unread        atomic.Pointer[string] // the shape of the newest of these addresses
	refusing      sync.Map               // *rateLimitedLog by the setting of a limit that refused
	limits        bodyLimits
	bodies        budget
	fixed         [][2][]byte // headers of every answer, in canonical spelling
	inFlight      atomic.Int64
	pool          sync.Pool
}

// Timeouts and limits of the protocol (SEC-42). Writing is timed from the end of
// the handler, so a long poll does not count against it.
const (
	readTimeout      = 5 * time.Second
	largeReadTimeout = 60 * time.Second // for bodies above the default limit
	idleTimeout      = 60 * time.Second
	writeTimeout     = 45 * time.Second
	headerLimit      = 8 << 10
	defaultTimeout   = 10 * time.Second
)

// New builds the server of a table. The error lists every problem of the options and the
// table: a credential without a guard, a flag without its hook, an endpoint defined twice. It
// also lists a guarded key without an endpoint, or of an endpoint that starts a challenge
// itself or accepts no x-auth.
func New(opts Options, endpoints []rest.Endpoint) (*Server, error) {
	opts.fill()
	opts.clampConnections()
	opts.pair(endpoints)
	s := &Server{opts: opts, index: NewIndex(endpoints), limits: bodyLimits{paths: map[string][]bodyLimit{}},
		bodies: budget{limit: opts.BodyBudget}, forwards: rateLimitedLog{every: time.Hour}}
	s.pool.New = func() any { return &Request{srv: s} }
	if opts.CountryHeader != "" {
		s.countryHeader = textproto.CanonicalMIMEHeaderKey(opts.CountryHeader)
	}
	var err error
	if s.cors, err = newCORS(opts.CORSOrigins, opts.CORSCredentials); err != nil {
		return nil, fmt.Errorf("cors: %w", err)
	}
	if err := errors.Join(opts.check(endpoints)...); err != nil {
		return nil, err
	}
	s.fix("Cache-Control", "no-store")
	s.fix("Api-Version", "1")
	s.fix("X-Content-Type-Options", "nosniff")
	s.fix("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	s.fix("Referrer-Policy", "no-referrer")
	if strings.HasPrefix(opts.PublicURL, "https://") {
		s.fix("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	s.App = fiber.New(fiber.Config{
		StrictRouting: true, CaseSensitive: true, Immutable: true,
		DisableStartupMessage: true, DisablePreParseMultipartForm: true,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ReadBufferSize: headerLimit,
		// The library reads one byte of a body; receive reads the rest.
		StreamRequestBody: true, BodyLimit: 1,
		Concurrency: concurrency(opts.MaxConnections), ErrorHandler: s.onError,
	})
	web := s.App.Server()
	web.Handler = s.edge(web.Handler)
	web.SecureErrorLogMessage = true
	web.Logger = log.New(io.Discard, "", 0) // its lines quote the client, and every answered request has its own line
	web.HeaderReceived = s.onHeader
	web.ConnState = onState
	for i := range endpoints {
		e := &endpoints[i]
		s.route(e.Method, e.Path, limitOf(e), s.handler(e))
	}
	return s, nil
}

// concurrency bounds the library well above the limit of Serve, because the library's own
// refusal has another shape.
func concurrency(connections int) int {
	if connections == 0 {
		return 0
	}
	return 2*connections + turningAway
}

func (s *Server) fix(name, value string) {
	s.fixed = append(s.fixed, [2][]byte{[]byte(name), []byte(value)})
}

// healthPath begins the paths of health checks. They are always served: by a draining node,
// and beyond every limit.
const healthPath = "/health/"

// HealthCheck reports whether a route's key is that of a health check.
func HealthCheck(key string) bool {
	_, path, _ := strings.Cut(key, " ")
	return strings.HasPrefix(path, healthPath)
}

// Raw adds a route outside the table: a socket, a page, a health check. Its requests pass the
// edge and the firewall, as "<METHOD> <path>". They need no credential unless h requires one,
// and have no Endpoint. A small body is read and dropped. An error that h returns becomes an
// answer like any other. The path is written as in the table, or with Fiber's wildcards.
func (s *Server) Raw(method, path string, h func(c *fiber.Ctx) error) {
	s.RawOr(method, path, h, func(_ *Request, err error) error { return err })
}

// RawOr is Raw with another answer for a request that the firewall refuses.
func (s *Server) RawOr(method, path string, h func(c *fiber.Ctx) error, refuse func(r *Request, err error) error) {
	key := method + " " + path
	s.route(method, path, rest.DefaultBodyLimit, func(c *fiber.Ctx) error {
		r := requestOf(c.Context())
		r.key = key
		if err := s.receive(r, rest.DefaultBodyLimit); err != nil {
			return err
		}
		if s.opts.Firewall != nil {
			ctx, cancel := s.context(r)
			err := s.opts.Firewall(ctx, r, key)
			cancel()
			if err != nil {
				return refuse(r, err)
			}
		}
		return h(c)
	})
}

func (s *Server) route(method, path string, bodyLimit int, h fiber.Handler) {
	path = s.opts.BasePath + strings.NewReplacer("{", ":", "}", "").Replace(path)
	s.limits.add(method, path, bodyLimit)
	s.App.Add(method, path, h)
	if method == fiber.MethodGet {
		s.App.Add(fiber.MethodHead, path, h)
	}
}

// InFlight is the number of requests being served, health checks and refusals
// of a draining node left out. It is counted while MaxInFlight is set.
func (s *Server) InFlight() int64 { return s.inFlight.Load() }

// edge wraps the router: every message passes here first and last.
func (s *Server) edge(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(fctx *fasthttp.RequestCtx) {
		r := s.begin(fctx)
		defer s.end(r)
		h := &fctx.Request.Header
		preflight := s.cors.answer(r) // first: a page must be able to read every refusal
		var why string
		if r.body.announced, why = framing(h); why != "" {
			endWell(fctx)
			r.refuse(fault.New(fault.InvalidField, "%s", why))
			return
		}
		defer func() {
			c := connectionOf(fctx)
			if r.body.unread() || c != nil && c.once { // the next bytes are not a request
				endWell(fctx)
			}
		}()
		if s.opts.LocalNames && !Loopback(string(h.Host())) {
			r.refuse(fault.New(fault.Forbidden, "development mode in a container answers only at localhost"))
			return
		}
		if !s.admit(r) {
			return
		}
		if f := canonical(h.RequestURI()); f != nil {
			s.unmatched(r, f)
			return
		}
		if r.repeated != "" {
			r.refuse(fault.New(fault.InvalidField, "the header %s is given more than once", r.repeated))
			return
		}
		if preflight {
			r.status = fiber.StatusNoContent
			fctx.Response.Header.SetNoDefaultContentType(true)
			fctx.SetStatusCode(r.status)
			return
		}
		if !slices.Contains(methods[:], r.Caller.Method) {
			h := &fctx.Response.Header
			h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
			s.unmatched(r, fault.New(fault.MethodNotAllowed, "the method is not supported"))
			return
		}
		next(fctx)
	}
}

// admit refuses requests when the process is full or draining. Health checks always pass,
// because they report both states.
func (s *Server) admit(r *Request) bool {
	if path, ok := strings.CutPrefix(r.Caller.Path, s.opts.BasePath); ok && strings.HasPrefix(path, healthPath) {
		return true
	}
	if s.opts.Draining != nil && s.opts.Draining() {
		r.fctx.SetConnectionClose()
		r.refuse(fault.New(fault.Draining, "this node is shutting down; try again"))
		return false
	}
	if s.opts.Resumed != nil && s.opts.Resumed() && clientLeft(r.fctx) {
		r.fctx.SetConnectionClose()
		r.refuse(fault.New(fault.Unavailable, "the client has gone"))
		return false
	}
	if s.opts.MaxInFlight > 0 {
		r.limited = true
		if err := s.enter(r); err != nil {
			r.refuse(err)
			return false
		}
	}
	return true
}

// enter counts a request against MaxInFlight, and leave undoes it.
func (s *Server) enter(r *Request) error {
	if !r.limited {
		return nil
	}
	r.counted = true
	if s.inFlight.Add(1) > int64(s.opts.MaxInFlight) {
		return fault.New(fault.Overloaded, "too many requests are being served; try again")
	}
	return nil
}

func (s *Server) leave(r *Request) {
	if r.counted {
		s.inFlight.Add(-1)
		r.counted = false
	}
}

var requestIDHeader = []byte("X-Request-Id")

// begin readies a pooled Request and the headers that every answer carries.
func (s *Server) begin(fctx *fasthttp.RequestCtx) *Request {
	r := s.pool.Get().(*Request)
	r.fctx, r.start = fctx, s.opts.Now()
	r.read()
	fctx.SetUserValue(requestKey{}, r)
	h := &fctx.Response.Header
	for i := range s.fixed {
		h.SetCanonical(s.fixed[i][0], s.fixed[i][1])
	}
	h.SetCanonical(requestIDHeader, []byte(r.Caller.RequestID))
	return r
}

// end is deferred: it turns a panic into an answer, reports the request and returns it
// to the pool.
func (s *Server) end(r *Request) {
	if p := recover(); p != nil {
		r.fctx.Response.ResetBody()
		r.owned = false
		r.refuse(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	}
	s.leave(r)
	s.release(&r.body)
	if r.status == 0 { // a raw handler wrote it
		r.status = r.fctx.Response.StatusCode()
	}
	if r.key == "" {
		r.key = unmatchedKey(r.Caller.Method)
	}
	if r.traced != nil {
		r.traced(r.status, r.code)
	}
	if !r.gone {
		s.report(r)
	}
	r.fctx.RemoveUserValue(requestKey{})
	*r = Request{srv: s, xff: r.xff[:0], forwarded: r.forwarded[:0]}
	s.pool.Put(r)
}

// context is the context of a request's work: it ends when the answer is due.
func (s *Server) context(r *Request) (context.Context, context.CancelFunc) {
	base := context.Background()
	if s.opts.Base != nil {
		base = s.opts.Base()
	}
	if s.opts.Trace != nil {
		base = s.follow(base, r)
	}
	return context.WithTimeout(base, s.opts.Timeout+r.Caller.Wait)
}

// follow begins the request's part in a trace, once.
func (s *Server) follow(base context.Context, r *Request) context.Context {
	if r.trace == nil {
		r.trace, r.traced = s.opts.Trace(base, Traceable{Key: r.key, Start: r.start, Parent: r.Header("Traceparent"),
			State:   r.Header("Tracestate"),
			Trusted: contains(s.opts.TrustedProxies, peerOf(r.fctx.RemoteAddr()))})
	}
	return r.trace
}

// unmatched answers a request that no route serves. The firewall counts it under a separate
// key, so that scanning for routes is limited too (D-WAF-08).
func (s *Server) unmatched(r *Request, f error) {
	r.key = unmatchedKey(r.Caller.Method)
	if s.opts.Firewall != nil {
		ctx, cancel := s.context(r)
		defer cancel()
		if err := s.opts.Firewall(ctx, r, r.key); err != nil {
			f = err
		}
	}
	r.refuse(f)
}

// unmatchedKey is the resource of requests that no route serves. Unknown methods share
// one, so that a client cannot invent keys without end.
func unmatchedKey(method string) string {
	switch {
	case method == "HEAD":
		method = "GET"
	case !slices.Contains(methods[:], method) && method != "TRACE" && method != "CONNECT":
		method = "UNKNOWN"
	}
	return method + " *"
}
