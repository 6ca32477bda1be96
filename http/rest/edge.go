package rest

import (
	"bytes"

	"castellan/domain/fault"

	"github.com/valyala/fasthttp"
)

// What HTTP itself must look like before anything else is asked (SEC-31, SEC-34).
// fasthttp refuses most ambiguous messages; the rest is refused here, because a
// proxy in front might read such a message differently and hide a second request
// inside it.

// maxTarget is the longest request target, path and query together.
const maxTarget = 2 << 10

// framing tells what is ambiguous about the message; "" when nothing is.
func framing(h *fasthttp.RequestHeader) string {
	if p := h.Protocol(); string(p) != "HTTP/1.1" && string(p) != "HTTP/1.0" {
		return "unsupported HTTP version"
	}
	raw := h.RawHeaders()
	chunked := h.ContentLength() == -1
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\n')
		if n < 0 {
			break
		}
		if n == 0 || raw[n-1] != '\r' {
			return "a line of the header does not end in CR LF"
		}
		if raw[0] == ' ' || raw[0] == '\t' {
			return "a line of the header is folded"
		}
		const name = "content-length:"
		if chunked && n > len(name) && bytes.EqualFold(raw[:len(name)], []byte(name)) {
			return "both Content-Length and Transfer-Encoding are given"
		}
		raw = raw[n+1:]
	}
	return ""
}

// pathBytes may stand in a path: RFC 3986's pchar without percent-encoding and
// without the semicolon of matrix parameters. No route needs either, and a path
// with two spellings is a way around a rule.
var pathBytes = func() (t [256]bool) {
	for _, ch := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,=:@/" {
		t[ch] = true
	}
	return
}()

// canonical refuses a target that is not the one spelling of a path.
//
// Errors: INVALID_FIELD for what is no path at all, NOT_FOUND for another
// spelling of one, HEADERS_TOO_LARGE for one too long.
func canonical(target []byte) *fault.Error {
	switch {
	case len(target) > maxTarget:
		return fault.New(fault.HeadersTooLarge, "the request target is longer than %d bytes", maxTarget)
	case len(target) == 0 || target[0] != '/':
		return fault.New(fault.InvalidField, "the request target must be a path")
	}
	path := target
	for i, ch := range target {
		if ch == '?' {
			path = target[:i]
			break
		}
	}
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
		case ch <= ' ' || ch == '\\' || ch == '#' || ch >= 0x7f:
			return fault.New(fault.InvalidField, "the path contains a character that is not allowed")
		case !pathBytes[ch]:
			return fault.New(fault.NotFound, "no such resource")
		}
		dot = ch == '.' && (dot || path[i-1] == '/')
	}
	if dot {
		return fault.New(fault.NotFound, "no such resource")
	}
	return nil
}
