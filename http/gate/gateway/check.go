package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/http/wire"

	"github.com/gofiber/fiber/v2"
)

// Options is what the check needs.
type Options struct {
	Guard *gateway.Guard
	// Bearer authenticates and judges the bearer of a request.
	Bearer func(ctx context.Context, r *edge.Request, original auth.Signing) (rest.Caller, error)
	// Service accepts the key of a service client, for a gateway whose address is not among the trusted proxies.
	Service func(header string, from netip.Addr) error
}

// path is the path of the check. A gateway may append the path of the request.
const path = "/guard/check"

// Mount adds the check, for every method.
func Mount(s *edge.Server, o Options) {
	h := func(c *fiber.Ctx) error {
		r := edge.RequestOf(c)
		d, err := o.check(r)
		return answer(c, r, d, err)
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		s.RawOr(method, path, h, refuse)
		s.RawOr(method, path+"/*", h, refuse)
	}
}

func (o Options) check(r *edge.Request) (gateway.Decision, error) {
	key := r.Header("service-auth")
	if !r.FromTrustedProxy() && (key == "" || o.Service(key, r.Caller.IP) != nil) {
		return gateway.Decision{}, fault.New(fault.Forbidden, "only gateways can ask: see http.trusted_proxies")
	}
	q, err := original(r)
	if err != nil {
		return gateway.Decision{}, err
	}
	grant, err := single(r, gateway.Header)
	if err != nil {
		return gateway.Decision{}, err
	}
	signed := auth.Signing{Method: q.Method, Host: q.Authority, Path: q.Path}
	caller := func(ctx context.Context) (gateway.User, challenge.Starter, audit.By, error) {
		return o.caller(ctx, r, signed)
	}
	return o.Guard.Check(context.Background(), q, grant, caller)
}

// caller authenticates the bearer of the original request.
func (o Options) caller(ctx context.Context, r *edge.Request, signing auth.Signing) (u gateway.User,
	from challenge.Starter, by audit.By, err error) {
	who, err := o.Bearer(ctx, r, signing)
	if err != nil {
		return u, from, by, err
	}
	return gateway.User{ID: who.UserID, Session: who.SessionID}, auth.From(who), who.By(), nil
}

// Checks reports whether a key of the firewall is that of the check.
func Checks(key string) bool {
	_, at, _ := strings.Cut(key, " ")
	return at == path || at == path+"/*"
}

// single returns a header that may come once only.
func single(r *edge.Request, name string) (string, error) {
	value, repeated := r.HeaderOnce(name)
	if repeated {
		return "", fault.New(fault.Forbidden, "the header %s was sent more than once", name)
	}
	return value, nil
}

// original reads the request that the gateway asks about. A gateway sets its own headers and passes those of its
// client, which may have sent the headers of other gateways. So all of them must agree.
func original(r *edge.Request) (q gateway.Request, err error) {
	read := func(name string) string {
		value, failed := single(r, name)
		if failed != nil {
			err = failed
		}
		return value
	}
	agree := func(a, b string) string {
		if a != "" && b != "" && a != b {
			err = fault.New(fault.Forbidden, "the headers name different requests")
		}
		return cmp.Or(a, b)
	}
	method := agree(read("X-Original-Method"), read("X-Forwarded-Method"))
	uri := agree(read("X-Original-Uri"), read("X-Forwarded-Uri"))
	sent, forwarded := read("X-Original-Host"), read("X-Forwarded-Host")
	host, authority := agree(gateway.HostOf(sent), gateway.HostOf(forwarded)), cmp.Or(sent, forwarded, r.Host())
	digest := read("Content-Digest")
	if below := r.Below(path); below != "" { // Envoy repeats the request below the path
		method, uri = agree(r.Caller.Method, method), agree(below, uri)
		host = agree(gateway.HostOf(r.Host()), host)
	}
	switch {
	case err != nil:
		return q, err
	case host == "" && cmp.Or(sent, forwarded) != "":
		return q, fault.New(fault.Forbidden, "the gateway sent no host")
	case method == "" || !strings.HasPrefix(uri, "/"):
		return q, fault.New(fault.Forbidden, "the gateway sent no request: see docs/guard.md")
	case host == "":
		host = gateway.HostOf(r.Host())
	}
	q = gateway.Request{Host: host, Authority: authority, Method: method, Digest: digest, Headers: r.Headers}
	q.Path, q.Query, _ = strings.Cut(uri, "?")
	return q, nil
}

// maxHeaderRows is the longest text of the rows, in bytes, that the header castellan-problem repeats: gateways bound
// their headers.
const maxHeaderRows = 2 << 10

// answer answers a gateway. Every refusal is 401, 403 or 5xx, because gateways take other statuses for errors. The
// problem is in a header too, for gateways that drop the body.
func answer(c *fiber.Ctx, r *edge.Request, d gateway.Decision, err error) error {
	if err != nil {
		return refuse(r, err)
	}
	if d.Challenge == nil {
		// Empty where there is none: a gateway that copies them must replace those of its client.
		r.SetHeader("castellan-user", d.User.ID)
		r.SetHeader("castellan-assertion", d.Assertion)
		c.Status(fiber.StatusNoContent)
		return nil
	}
	started := wire.Started(*d.Challenge)
	text, err := json.Marshal(started.Body.Challenge)
	if err != nil {
		return fmt.Errorf("guard: challenge: %w", err)
	}
	for _, h := range started.Headers {
		r.SetHeader(h.Name, h.Value)
	}
	_, body := rest.Problem(fault.New(fault.ChallengeRequired, "complete the challenge, and repeat the request with %s",
		gateway.Header), r.Caller.Language, r.Caller.RequestID)
	const last = `,"requestId"`
	with := func(more []byte) []byte { return bytes.Replace(body, []byte(last), append(more, last...), 1) }
	rows, err := json.Marshal(d.Rows)
	if err != nil {
		return fmt.Errorf("guard: rows: %w", err)
	}
	whole := with(fmt.Appendf(nil, `,"challenge":%s,"rows":%s`, text, rows))
	header := whole
	if len(rows) > maxHeaderRows {
		header = with(fmt.Appendf(nil, `,"challenge":%s`, text))
	}
	problem(r, http.StatusUnauthorized, fault.ChallengeRequired, whole, header)
	return nil
}

func refuse(r *edge.Request, err error) error {
	f, internal := rest.FaultOf(err)
	if internal {
		return err
	}
	status, body := rest.Problem(f, r.Caller.Language, r.Caller.RequestID)
	if status < 500 && status != http.StatusUnauthorized && status != http.StatusForbidden {
		body = bytes.Replace(body, fmt.Appendf(nil, `"status":%d`, status), []byte(`"status":403`), 1)
		status = http.StatusForbidden
	}
	if n := rest.RetryAfter(f); n > 0 {
		r.SetHeader("Retry-After", fmt.Sprint(n))
	}
	problem(r, status, f.Code, body, body)
	return nil
}

// problem refuses a request. header is the problem in the form for gateways that drop the body.
func problem(r *edge.Request, status int, code fault.Code, body, header []byte) {
	if status == http.StatusUnauthorized {
		r.SetHeader("WWW-Authenticate", "Castellan")
	}
	r.SetHeader("castellan-problem", ascii(header))
	r.Refuse(status, code, body)
}

// ascii writes JSON in ASCII, as a header requires.
func ascii(text []byte) string {
	var b strings.Builder
	for _, c := range string(text) {
		switch {
		case c < 0x7f:
			b.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(c>>10), 0xdc00+(c&0x3ff))
		}
	}
	return b.String()
}
