package rest

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Cross-origin access (D-GEN-20). The service has no cookies: a foreign page
// holds no credential that a browser would send by itself, so what CORS guards
// here is reading answers.
const (
	exposedHeaders = "p-auth, ot-auth, x-auth, retry-after, ratelimit, ratelimit-policy, link, x-total-count, x-request-id, " +
		"api-version, device-signature-nonce, idempotency-replayed"
	allowedHeaders = "x-auth, p-auth, ot-auth, cron-auth, device-signature, device_signature, otp, x-otp, accept-language, " +
		"device-brand, device-model, device-desc, tenant-id, idempotency-key, content-type, prefer"
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
		errs = append(errs, errors.New(`the origin "*" must stand alone`))
	}
	return c, errors.Join(errs...)
}

// allows tells whether a page of origin may talk to the service; the socket
// asks it too (D-SOCK-01).
func (c cors) allows(origin string) bool { return c.any || c.origins[origin] }

// answer sets the headers of one answer and tells whether the request was a
// preflight, which they answer wholly.
func (c cors) answer(r *Request) (preflight bool) {
	if !c.any && len(c.origins) == 0 {
		return false
	}
	h := &r.fctx.Response.Header
	if !c.any {
		h.Set("Vary", "Origin")
	}
	in := &r.fctx.Request.Header
	origin := in.Peek("Origin")
	if len(origin) == 0 {
		return false
	}
	method := in.Peek("Access-Control-Request-Method")
	preflight = r.Caller.Method == "OPTIONS" && len(method) > 0
	if !c.any && !c.origins[string(origin)] {
		return preflight
	}
	if c.any {
		h.Set("Access-Control-Allow-Origin", "*")
	} else {
		h.SetBytesV("Access-Control-Allow-Origin", origin)
	}
	if c.credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if !preflight {
		h.Set("Access-Control-Expose-Headers", exposedHeaders)
		return false
	}
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", allowedMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders)
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// AllowsOrigin tells whether a page of origin may use the service.
func (s *Server) AllowsOrigin(origin string) bool { return s.cors.allows(origin) }
