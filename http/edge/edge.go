package edge

import (
	"bytes"
	"errors"
	"strconv"

	"castellan/domain/kit/fault"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// The form of a message, judged before anything else (SEC-31, SEC-34). fasthttp refuses most
// ambiguous messages, and this file refuses the others. A proxy could read such a message
// differently, and a client could hide a second request inside it.

// maxTarget is the longest request target, path and query together.
const maxTarget = 2 << 10

// framing returns the announced length of the body, and why the message is ambiguous
// or not accepted; "" when it is fine. It reads the text of the head, since the library
// keeps only part of it.
func framing(h *fasthttp.RequestHeader) (announced int64, why string) {
	if p := h.Protocol(); string(p) != "HTTP/1.1" && string(p) != "HTTP/1.0" {
		return 0, "unsupported HTTP version"
	}
	raw := h.RawHeaders()
	var length, coded bool
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\n')
		if n < 0 {
			break
		}
		if n == 0 || raw[n-1] != '\r' {
			return 0, "a line of the header does not end in CR LF"
		}
		if raw[0] == ' ' || raw[0] == '\t' {
			return 0, "a line of the header is folded"
		}
		if n == 1 { // the empty line at the end
			break
		}
		name, value, _ := bytes.Cut(raw[:n-1], colon)
		switch {
		case !tokenBytes.spells(name):
			return 0, "the name of a header is not a token"
		case isName(name, contentLength):
			length = true
			n, err := strconv.ParseInt(string(bytes.Trim(value, " \t")), 10, 64)
			if err != nil || n < 0 {
				return 0, "the length is not a number"
			}
			announced = n
		case isName(name, transferEncoding):
			if coded || !bytes.EqualFold(bytes.Trim(value, " \t"), chunked) { // RFC 9112, section 6.3
				return 0, "the transfer coding is not exactly chunked"
			}
			coded, announced = true, unknownLength
		case isName(name, trailer):
			return 0, "trailers are not accepted"
		}
		raw = raw[n+1:]
	}
	if length && coded {
		return 0, "both Content-Length and Transfer-Encoding are given"
	}
	return announced, ""
}

var (
	colon, chunked                           = []byte(":"), []byte("chunked")
	contentLength, transferEncoding, trailer = []byte("content-length"), []byte("transfer-encoding"), []byte("trailer")
)

// isName compares the name of a header, a token, with a name in lower case. Tokens are ASCII, so equal names have equal
// lengths, which spares most comparisons.
func isName(name, lower []byte) bool { return len(name) == len(lower) && bytes.EqualFold(name, lower) }

// byteSet is a set of bytes.
type byteSet [256]bool

func setOf(bytes string) (s byteSet) {
	for _, b := range []byte(bytes) {
		s[b] = true
	}
	return s
}

// spells reports whether a text is made of the bytes of the set; false for an empty one.
func (s *byteSet) spells(text []byte) bool {
	for _, b := range text {
		if !s[b] {
			return false
		}
	}
	return len(text) > 0
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// tokenBytes are the bytes of a name (RFC 9110, section 5.6.2). fasthttp takes spaces for parts of a name, where a
// proxy might see another header.
var tokenBytes = setOf(alphanumeric + "!#$%&'*+-.^_`|~")

// pathBytes are the bytes allowed in a path: RFC 3986's pchar without percent-encoding and
// without the semicolon of matrix parameters. No route needs either, and a path with two
// spellings could bypass a rule.
var pathBytes = setOf(alphanumeric + "-._~!$&'()*+,=:@/")

// canonical refuses a target that is not the one spelling of a path.
//
// Errors: INVALID_FIELD when it is no path at all, NOT_FOUND for another spelling of
// a path, HEADERS_TOO_LARGE when it is too long.
func canonical(target []byte) *fault.Error {
	switch {
	case len(target) > maxTarget:
		return fault.New(fault.HeadersTooLarge, "the request target is longer than %d bytes", maxTarget)
	case len(target) == 0 || target[0] != '/':
		return fault.New(fault.InvalidField, "the request target must be a path")
	}
	path, _, _ := bytes.Cut(target, questionMark)
	for _, ch := range target[len(path):] {
		if ch <= ' ' || ch == '#' || ch == 0x7f {
			return fault.New(fault.InvalidField, "the query contains a character that must be encoded")
		}
	}
	dot := false // the segment so far is made of dots alone
	for i, ch := range path {
		switch {
		case ch == '/':
			if i > 0 && path[i-1] == '/' || dot {
				return fault.New(fault.NotFound, "no such resource")
			}
		case pathBytes[ch]:
		case ch <= ' ' || ch == '\\' || ch == '#' || ch >= 0x7f:
			return fault.New(fault.InvalidField, "the path contains a character that is not allowed")
		default:
			return fault.New(fault.NotFound, "no such resource")
		}
		dot = ch == '.' && (dot || path[i-1] == '/')
	}
	if dot {
		return fault.New(fault.NotFound, "no such resource")
	}
	return nil
}

// onError answers the errors of the router, of a raw handler and of fasthttp itself.
// An error of fasthttp comes without a Request: the message was never whole.
func (s *Server) onError(c *fiber.Ctx, err error) error {
	r := requestOf(c.Context())
	if r == nil {
		if connectionBroken(c.Context(), err) {
			return nil
		}
		endWell(c.Context())
		r = s.begin(c.Context())
		defer s.end(r)
		s.cors.refuse(connectionOf(c.Context()), &c.Context().Response.Header)
		r.refuse(protocolFault(err))
		return nil
	}
	var fe *fiber.Error
	switch {
	case !errors.As(err, &fe):
		r.refuse(err)
	case r.key == "" && fe.Code == fiber.StatusMethodNotAllowed:
		s.unmatched(r, fault.New(fault.MethodNotAllowed, "the resource does not support this method"))
	case r.key == "":
		s.unmatched(r, fault.New(fault.NotFound, "no such resource"))
	default:
		r.refuse(protocolFault(err))
	}
	return nil
}

// connectionBroken reports whether the connection broke, or its client never sent a request. The
// connection is then closed without an answer.
func connectionBroken(fctx *fasthttp.RequestCtx, err error) bool {
	conn := connectionOf(fctx)
	var fe *fiber.Error
	if conn == nil || !errors.As(err, &fe) || conn.spoke.Load() && fe.Code != fiber.StatusBadGateway {
		return false
	}
	conn.mute.Store(true)
	return true
}

// protocolFault words an error of Fiber or fasthttp about a message. Their own texts may quote the
// client, so none of them is used.
func protocolFault(err error) error {
	var fe *fiber.Error
	if !errors.As(err, &fe) {
		return err
	}
	switch fe.Code {
	case fiber.StatusRequestEntityTooLarge:
		return fault.New(fault.PayloadTooLarge, "the body is too large")
	case fiber.StatusRequestHeaderFieldsTooLarge:
		return fault.New(fault.HeadersTooLarge, "the headers are larger than %d bytes", headerLimit)
	case fiber.StatusRequestTimeout:
		return fault.New(fault.RequestTimeout, "the request did not arrive in time")
	}
	if fe.Code >= 400 && fe.Code < 500 {
		return fault.New(fault.InvalidField, "malformed request")
	}
	return err
}
