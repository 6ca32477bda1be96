// Package rls answers Envoy's rate limit service (envoy.service.ratelimit.v3) by the limits of services (D-WAF-22).
//
// The one idea: a descriptor is a request POST /limit, served inside the process with the key and the address of the
// caller. So credentials, permissions, rules and counters are those of the endpoint. The messages are few and small, so
// message.go reads and writes their fields without generated code. Start reading at decide.
package rls

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

const (
	maxMessage     = 64 << 10 // bytes
	maxDescriptors = 32
	maxEntity      = 128 // bytes; a longer one is counted by its hash
	maxKey         = 1 << 10
	maxStreams     = 100              // of a connection at a time
	patience       = 10 * time.Second // for a connection to be set up, and for a call
	workers        = 32               // goroutines that serve one call after another, because a new one grows its stack
)

// Handler answers the method ShouldRateLimit.
type Handler struct {
	// Serve serves a request of the interface, and Path is the path of POST /limit there.
	Serve fasthttp.RequestHandler
	Path  string
}

// Server returns the server of a listener. Without credentials of TLS among the options it has no TLS.
func (h *Handler) Server(options ...grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(options, grpc.ForceServerCodec(written{}), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(16<<10), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(patience),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Minute}),
		grpc.NumStreamWorkers(workers), grpc.InTapHandle(hurried))...)
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "envoy.service.ratelimit.v3.RateLimitService",
		HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "ShouldRateLimit", Handler: called}}}, h)
	return s
}

// hurried bounds a call whose client does not. A call whose message never comes would otherwise stay.
func hurried(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) <= patience {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	context.AfterFunc(ctx, cancel)
	return ctx, nil
}

// called implements the handler of a grpc.MethodDesc.
func called(h any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var message []byte
	if err := read(&message); err != nil {
		return nil, err
	}
	return h.(*Handler).answer(ctx, message)
}

// written is a codec for messages that are written already.
type written struct{}

func (written) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (written) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }
func (written) Name() string                    { return "proto" }

// answer returns the response message, or an error with a status.
func (h *Handler) answer(ctx context.Context, message []byte) ([]byte, error) {
	keys := metadata.ValueFromIncomingContext(ctx, "service-auth")
	if len(keys) != 1 || len(keys[0]) > maxKey {
		return nil, status.Error(codes.Unauthenticated, "service-auth is needed")
	}
	q, ok := readRequest(message)
	if !ok || len(q.descriptors) == 0 || len(q.descriptors) > maxDescriptors {
		return nil, status.Error(codes.InvalidArgument,
			"not a RateLimitRequest with 1 to 32 descriptors and positive hits")
	}
	if name, _, _ := strings.Cut(keys[0], "."); name != q.domain {
		return nil, status.Error(codes.PermissionDenied, "domain must be the name of the service client")
	}
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "the address of the client is unknown")
	}
	c := caller{h, from.Addr, keys[0], ctx}
	states := make([]state, len(q.descriptors))
	for i, d := range q.descriptors {
		var code codes.Code
		if states[i], code = c.decide(d); code != codes.OK {
			return nil, status.Error(code, "not decided; the requests of other descriptors can have been counted")
		}
	}
	return appendResponse(nil, states), nil
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
func (c caller) decide(d descriptor) (state, codes.Code) {
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
	s, code, field := c.ask(q)
	if field == "entity" { // not printable
		hash()
		s, code, field = c.ask(q)
	}
	switch field {
	case "rule":
		return state{Allowed: true}, codes.OK
	case "entity":
		return state{}, codes.OK
	}
	return s, code
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
func (c caller) ask(q question) (s state, code codes.Code, field string) {
	if c.ctx.Err() != nil {
		return s, codes.Unavailable, ""
	}
	body, err := json.Marshal(q)
	if err != nil {
		return s, codes.Internal, ""
	}
	// The server checks the header as it was sent. The values of HTTP/2 contain no line breaks.
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"service-auth: %s\r\n\r\n", c.Path, len(body), c.key)
	var fctx fasthttp.RequestCtx
	fctx.Init(&fasthttp.Request{}, c.from, nil)
	if err := fctx.Request.Header.Read(bufio.NewReaderSize(strings.NewReader(head), len(head))); err != nil {
		return s, codes.Internal, ""
	}
	fctx.Request.SetBodyStream(bytes.NewReader(body), len(body))
	c.Serve(&fctx)
	var got struct {
		Data   state
		Errors []struct{ Field string }
	}
	if err := json.NewDecoder(bytes.NewReader(fctx.Response.Body())).Decode(&got); err != nil {
		return s, codes.Internal, ""
	}
	switch fctx.Response.StatusCode() {
	case http.StatusOK:
		return got.Data, codes.OK, ""
	case http.StatusBadRequest:
		if len(got.Errors) == 1 {
			field = got.Errors[0].Field
		}
		return s, codes.InvalidArgument, field
	case http.StatusUnauthorized:
		return s, codes.Unauthenticated, ""
	case http.StatusForbidden:
		return s, codes.PermissionDenied, ""
	case http.StatusTooManyRequests: // of a rule for this endpoint
		return s, codes.ResourceExhausted, ""
	case http.StatusServiceUnavailable:
		return s, codes.Unavailable, ""
	default:
		return s, codes.Internal, ""
	}
}
