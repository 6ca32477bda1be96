// Package rls answers Envoy's rate limit service (envoy.service.ratelimit.v3) by the limits of services (D-WAF-22).
//
// The one idea: a descriptor is a request POST /limit, served inside the process with the key and the address of the
// caller. So credentials, permissions, rules and counters are those of the endpoint. The messages are few and small, so
// message.go reads and writes them by hand, and net/http carries gRPC. Start reading at ServeHTTP.
package rls

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

const (
	method         = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	maxMessage     = 64 << 10 // bytes
	maxDescriptors = 32
	maxEntity      = 128 // bytes; a longer one is counted by its hash
	maxKey         = 1 << 10
)

// status is a status of gRPC.
type status int

const (
	statusOK                status = 0
	statusInvalidArgument   status = 3
	statusPermissionDenied  status = 7
	statusResourceExhausted status = 8
	statusUnimplemented     status = 12
	statusInternal          status = 13
	statusUnavailable       status = 14
	statusUnauthenticated   status = 16
)

// Handler serves the method ShouldRateLimit over HTTP/2.
type Handler struct {
	// Serve serves a request of the interface, and Path is the path of POST /limit there.
	Serve fasthttp.RequestHandler
	Path  string
}

// Server returns the server of a listener. It serves HTTP/2 alone, without TLS if there is no configuration of TLS.
func (h *Handler) Server() *http.Server {
	s := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 10 * time.Minute, MaxHeaderBytes: 16 << 10, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		w.WriteHeader(http.StatusUnsupportedMediaType) // without a body, which a closed window would hold
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.WriteHeader(http.StatusOK)
	answer, st, text := h.answer(r)
	if st == statusOK {
		head := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer)))
		_, _ = w.Write(append(head, answer...)) // #nosec G705: numbers in a message of gRPC, which no browser shows
	}
	_ = http.NewResponseController(w).Flush() // measured: it costs less CPU than an answer with a length
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(st)))
	if text != "" {
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
	}
}

// answer returns the response message, or a status with a text.
func (h *Handler) answer(r *http.Request) ([]byte, status, string) {
	if r.URL.Path != method {
		return nil, statusUnimplemented, "only " + method + " is served here"
	}
	keys := r.Header.Values("service-auth")
	if len(keys) != 1 || len(keys[0]) > maxKey {
		return nil, statusUnauthenticated, "service-auth is needed"
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 5+maxMessage+1))
	if err != nil || len(raw) < 5 || uint64(binary.BigEndian.Uint32(raw[1:])) != uint64(len(raw)-5) {
		return nil, statusInvalidArgument, "not one message of at most 64 KiB"
	}
	if raw[0] != 0 {
		return nil, statusUnimplemented, "messages must not be compressed"
	}
	q, ok := readRequest(raw[5:])
	if !ok || len(q.descriptors) == 0 || len(q.descriptors) > maxDescriptors {
		return nil, statusInvalidArgument, "not a RateLimitRequest with 1 to 32 descriptors and positive hits"
	}
	if name, _, _ := strings.Cut(keys[0], "."); name != q.domain {
		return nil, statusPermissionDenied, "domain must be the name of the service client"
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return nil, statusInternal, "the address of the client is unknown"
	}
	c := caller{h, net.TCPAddrFromAddrPort(from), keys[0], r.Context()}
	states := make([]state, len(q.descriptors))
	for i, d := range q.descriptors {
		var st status
		if states[i], st = c.decide(d); st != statusOK {
			return nil, st, "not decided; the requests of other descriptors can have been counted"
		}
	}
	return appendResponse(nil, states), statusOK, ""
}

// caller asks with one key from one address.
type caller struct {
	*Handler
	from net.Addr
	key  string
	ctx  context.Context
}

// decide counts a descriptor. The limit is named by the keys of its entries, and the entity is their values. A
// descriptor without a limit is allowed, and an entity that the limit cannot count is over it: otherwise a client that
// chooses its value would avoid the limit.
func (c caller) decide(d descriptor) (state, status) {
	names, values := make([]string, len(d.entries)), make([]string, len(d.entries))
	for i, e := range d.entries {
		names[i], values[i] = e.key, e.value
		if len(d.entries) > 1 { // the parts of an entity stay distinct
			values[i] = strings.NewReplacer("%", "%25", "|", "%7C").Replace(e.value)
		}
	}
	q := question{Rule: strings.Join(names, "|"), Entity: strings.Join(values, "|"), Cost: max(1, d.hits),
		Peek: d.hits == 0}
	hash := func() {
		sum := sha256.Sum256([]byte(q.Entity))
		q.Entity = "sha256:" + hex.EncodeToString(sum[:])
	}
	if len(q.Entity) > maxEntity || !utf8.ValidString(q.Entity) {
		hash()
	}
	s, st, field := c.ask(q)
	if field == "entity" { // not printable
		hash()
		s, st, field = c.ask(q)
	}
	switch field {
	case "rule":
		return state{Allowed: true}, statusOK
	case "entity":
		return state{}, statusOK
	}
	return s, st
}

// question is the body of POST /limit, and state is its answer.
type question struct {
	Rule   string `json:"rule"`
	Entity string `json:"entity"`
	Cost   uint64 `json:"cost"`
	Peek   bool   `json:"peek"`
}

type state struct {
	Allowed   bool  `json:"allowed"`
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	ResetMs   int64 `json:"resetMs"`
}

// ask sends a request to the endpoint. field is the field of an INVALID_FIELD.
func (c caller) ask(q question) (s state, st status, field string) {
	if c.ctx.Err() != nil {
		return s, statusUnavailable, ""
	}
	body, err := json.Marshal(q)
	if err != nil {
		return s, statusInternal, ""
	}
	// The server checks the header as it was sent. The values of HTTP/2 contain no line breaks.
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"service-auth: %s\r\n\r\n", c.Path, len(body), c.key)
	var fctx fasthttp.RequestCtx
	fctx.Init(&fasthttp.Request{}, c.from, nil)
	if err := fctx.Request.Header.Read(bufio.NewReader(strings.NewReader(head))); err != nil {
		return s, statusInternal, ""
	}
	fctx.Request.SetBodyStream(bytes.NewReader(body), len(body))
	c.Serve(&fctx)
	var got struct {
		Data   state
		Errors []struct{ Field string }
	}
	if err := json.NewDecoder(bytes.NewReader(fctx.Response.Body())).Decode(&got); err != nil {
		return s, statusInternal, ""
	}
	switch code := fctx.Response.StatusCode(); code {
	case http.StatusOK:
		return got.Data, statusOK, ""
	case http.StatusBadRequest:
		if len(got.Errors) == 1 {
			field = got.Errors[0].Field
		}
		return s, statusInvalidArgument, field
	case http.StatusUnauthorized:
		return s, statusUnauthenticated, ""
	case http.StatusForbidden:
		return s, statusPermissionDenied, ""
	case http.StatusTooManyRequests: // of a rule for this endpoint
		return s, statusResourceExhausted, ""
	case http.StatusServiceUnavailable:
		return s, statusUnavailable, ""
	default:
		return s, statusInternal, ""
	}
}
