package edge

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// Cross-origin access (D-GEN-20). The service has no cookies, so a browser sends no
// credential by itself for a foreign page. CORS only guards the reading of answers.
const (
	exposedHeaders = "p-auth, ot-auth, x-auth, retry-after, ratelimit, ratelimit-policy, link, x-total-count, " +
		"x-request-id, " +
		"api-version, device-signature-nonce, dpop-nonce, idempotency-replayed"
	allowedHeaders = "x-auth, p-auth, ot-auth, cron-auth, device-signature, device_signature, otp, x-otp, " +
		"accept-language, webauthn-assertion, recovery-code, " +
		"device-brand, device-model, device-desc, tenant-id, idempotency-key, content-type, prefer, dpop"
	allowedMethods = "GET, POST, PATCH, PUT, DELETE"
)

type cors struct {
	origins     map[string]bool
	any         bool
	credentials bool
}

func newCORS(origins []string, credentials bool) (cors, error) {
	c := cors{origins: map[string]bool{}, credentials: credentials}
	var errs []error
	for _, o := range origins {
		if o == "*" {
			c.any = true
			continue
		}
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o || strings.ToLower(o) != o {
			errs = append(errs, fmt.Errorf("origin %q is not scheme://host in lower case", o))
			continue
		}
		c.origins[o] = true
	}
	if c.any && credentials {
		errs = append(errs, errors.New(`the origin "*" cannot be used together with credentials`))
	}
	if c.any && len(origins) > 1 {
		errs = append(errs, errors.New(`the origin "*" must be the only origin`))
	}
	return c, errors.Join(errs...)
}

// allows reports whether a page of origin may talk to the service; the socket uses it too (D-SOCK-01).
func (c cors) allows(origin string) bool { return c.any || c.origins[origin] }

// answer sets the headers of one answer and reports whether the request was a
// preflight. These headers are the whole answer to a preflight that is not refused.
func (c cors) answer(r *Request) (preflight bool) {
	in, h := &r.fctx.Request.Header, &r.fctx.Response.Header
	origin := in.Peek("Origin")
	preflight = len(origin) > 0 && c.used() && r.Caller.Method == "OPTIONS" &&
		len(in.Peek("Access-Control-Request-Method")) > 0
	switch {
	case !c.allow(h, origin):
		return preflight
	case !preflight:
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
		return false
	}
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", allowedMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders)
	h.Set("Access-Control-Max-Age", "600")
	return true
}

func (c cors) used() bool { return c.any || len(c.origins) > 0 }

// allow lets a page of origin read an answer and reports whether it may.
func (c cors) allow(h *fasthttp.ResponseHeader, origin []byte) bool {
	if c.used() && !c.any {
		h.Set("Vary", "Origin")
	}
	switch {
	case len(origin) == 0 || !c.allows(string(origin)):
		return false
	case c.any:
		h.Set("Access-Control-Allow-Origin", "*")
	default:
		h.SetBytesV("Access-Control-Allow-Origin", origin)
	}
	if c.credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	return true
}

// refuse sets the headers of an answer to a message that never became a request. The library
// has no headers of it, so the origin seen on the connection counts.
func (c cors) refuse(conn *connection, h *fasthttp.ResponseHeader) {
	var origin []byte
	if conn != nil {
		origin = []byte(conn.origin)
	}
	if c.allow(h, origin) {
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
	}
}

// seen is the allowed origin in a piece of the client's text; last if it contains none. It
// need not be exact: a client that writes a foreign origin into a body only keeps its own page
// from reading the refusal.
func (c cors) seen(text []byte, last string) string {
	for {
		_, line, found := bytes.Cut(text, lineFeed)
		if !found {
			return last
		}
		text = line
		if len(line) < len(originField) || !bytes.EqualFold(line[:len(originField)], originField) {
			continue
		}
		line, _, _ = bytes.Cut(line[len(originField):], lineFeed)
		if line = bytes.TrimSpace(line); c.allows(string(line)) && string(line) != last {
			last = string(line)
		}
	}
}

var lineFeed, originField = []byte("\n"), []byte("origin:")

// AllowsOrigin reports whether a page of origin may use the service.
func (s *Server) AllowsOrigin(origin string) bool { return s.cors.allows(origin) }
