package edge

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Request is a request on its way to an endpoint, as the hooks see it. It is valid until the
// hook returns and must not be kept: it is reused for another request. Everything its methods
// return is a copy.
type Request struct {
	// Caller holds what is known without a credential.
	Caller   rest.Caller
	Endpoint *rest.Endpoint // nil on a raw route and where no route matches

	srv      *Server
	fctx     *fasthttp.RequestCtx
	key      string // "<METHOD> <template>"; "" until a route matched
	start    time.Time
	asked    string // the language that the request itself requests
	encoded  bool   // the body has a content coding
	repeated string // name of a header that may come once only and came twice
	clientID string // the client's id of the request, for the log; Caller.RequestID is ours
	owned    bool   // refusals take the endpoint's own shape
	limited  bool   // MaxInFlight applies
	proved   bool   // the proof of the session key was accepted
	counted  bool   // against MaxInFlight, at the moment
	gone     bool   // the client is gone
	body     body
	status   int
	code     fault.Code
	refused  *fault.Error // for the log; nil for a success
	internal error        // what went wrong inside, for the log

	rehearsed *Rehearsal // of a call that requires a second person

	trace  context.Context // nil until it begins
	traced func(status int, code fault.Code)

	xff       []string
	forwarded []string // of Forwarded
}

// RequestOf is the request of a raw handler's context.
func RequestOf(c *fiber.Ctx) *Request { return requestOf(c.Context()) }

type requestKey struct{}

func requestOf(fctx *fasthttp.RequestCtx) *Request {
	r, _ := fctx.UserValue(requestKey{}).(*Request)
	return r
}

// Header is a copy of a request header, "" when it is absent.
func (r *Request) Header(name string) string { return string(r.fctx.Request.Header.Peek(name)) }

// SetHeader sets a header of the answer, also when that is a refusal.
func (r *Request) SetHeader(name, value string) { r.fctx.Response.Header.Set(name, value) }

// SetHeaderBytes is SetHeader for a value that is copied.
func (r *Request) SetHeaderBytes(name string, value []byte) {
	r.fctx.Response.Header.SetBytesV(name, value)
}

// Waits reports whether the client still waits for its answer.
func (r *Request) Waits() bool { return !clientLeft(r.fctx) }

// Key is "<METHOD> <template>" of the matched route, "<METHOD> *" for none.
func (r *Request) Key() string { return r.key }

// Proved reports whether SetProved was called for this request: a credential that is checked again need not be proved
// again.
func (r *Request) Proved() bool { return r.proved }

// SetProved records that the proof of the session key was accepted and is used up.
func (r *Request) SetProved() { r.proved = true }

// LanguageAsked reports whether the client requested Caller.Language. Otherwise it is the
// configured default, and a user's stored language takes precedence.
func (r *Request) LanguageAsked() bool { return r.asked != "" }

// Bounds of texts that a client sends, in bytes, and of its longest wait.
const (
	maxDevice    = 128
	maxUserAgent = 512
	maxKey       = 255 // of an idempotency key
	maxWait      = 30 * time.Second
)

// read takes from the request what every endpoint gets, in one pass over the
// headers. Texts that end in the Caller share one allocation.
func (r *Request) read() {
	h := &r.fctx.Request.Header
	var brand, model, desc, agent, signature, proof, otp, xotp, key, requestID, accept, asked, prefer, ctry, tags []byte
	var assertion, recovery, oldSignature []byte
	var countries int
	// A header that affects a decision may occur only once: with two of them, another reader of the request could choose
	// the other one and see another caller.
	seen := make([][]byte, 0, 16) // names of those headers
	once := func(name []byte) {
		if slices.ContainsFunc(seen, func(before []byte) bool { return string(before) == string(name) }) {
			r.repeated = strings.ToLower(string(name))
			return
		}
		seen = append(seen, name)
	}
	for k, v := range h.All() {
		switch string(k) {
		case "User-Agent":
			agent = v
		case "Device-Brand":
			brand = v
		case "Device-Model":
			model = v
		case "Device-Desc":
			desc = v
		case "Accept-Language":
			accept = v
		case "_requesterlanguage":
			asked = v
		case "X-Request-Id":
			requestID = v
		case "Prefer":
			prefer = v
		case "If-None-Match":
			tags = v
		case "Content-Encoding":
			r.encoded = len(v) > 0 && !strings.EqualFold(string(v), "identity")
		case "X-Forwarded-For":
			r.xff = append(r.xff, string(v))
		case "Forwarded":
			r.forwarded = append(r.forwarded, string(v))
		case "X-Auth", "P-Auth", "Ot-Auth", "Cron-Auth", "Service-Auth", "Tenant-Id", "Origin":
			once(k)
		case "Device-Signature":
			once(k)
			signature = v
		case "Device_signature":
			once(k)
			oldSignature = v
		case "Webauthn-Assertion":
			once(k)
			assertion = v
		case "Recovery-Code":
			once(k)
			recovery = v
		case "Dpop":
			once(k)
			proof = v
		case "Otp":
			once(k)
			otp = v
		case "X-Otp":
			once(k)
			xotp = v
		case "Idempotency-Key":
			once(k)
			key = v
		default:
			if ch := r.srv.countryHeader; ch != "" && string(k) == ch {
				ctry = v
				countries++
			}
		}
	}
	if len(otp) == 0 {
		otp = xotp
	}
	if len(signature) == 0 {
		signature = oldSignature
	}
	path, query, _ := bytes.Cut(h.RequestURI(), questionMark)
	c := &r.Caller
	var a arena
	a.b.Grow(len(path) + len(query) + len(signature) + len(assertion) + len(recovery) + len(otp) + len(key) + len(tags) +
		min(len(agent), maxUserAgent) + min(len(brand), maxDevice) + min(len(model), maxDevice) + min(len(desc), maxDevice))
	c.Path, c.RawQuery = a.copy(path), a.copy(query)
	c.DeviceSignature, c.OTP, c.IdempotencyKey = a.copy(signature), a.copy(otp), a.copy(key)
	if len(proof) > 0 { // its target names the host
		c.KeyProof, c.Host = string(proof), string(r.fctx.Host())
	}
	c.HasTags, c.Assertion, c.RecoveryCode = a.copy(tags), a.copy(assertion), a.copy(recovery)
	c.Device = rest.DeviceInfo{Brand: a.text(brand, maxDevice), Model: a.text(model, maxDevice),
		Description: a.text(desc, maxDevice), UserAgent: a.text(agent, maxUserAgent)}
	c.Method = methodName(h.Method())
	c.Wait = wait(prefer)
	c.RequestID = id.New(r.start)
	if len(requestID) <= maxClientID && requestIDBytes.spells(requestID) {
		r.clientID = string(requestID)
	}

	peer := peerOf(r.fctx.RemoteAddr())
	var unread string
	if c.IP, unread = ClientIP(peer, r.xff, r.forwarded, r.srv.opts.TrustedProxies); unread != "" {
		r.srv.unreadable(peer, unread)
	}
	told := countries > 0 && contains(r.srv.opts.TrustedProxies, peer)
	if told && countries > 1 { // only one of them is the proxy's
		told = false
		r.srv.countries.warn(r.srv.opts.Logger, "a trusted proxy lets clients set their country; the header is ignored",
			"header", r.srv.countryHeader, "proxy", peer)
	}
	if told {
		c.Country = country(string(ctry))
	} else if of := r.srv.opts.CountryOf; of != nil && c.IP.IsValid() {
		c.Country = country(of(c.IP))
	}

	if r.asked = rest.LanguageOf(string(asked)); r.asked == "" && len(accept) > 0 {
		r.asked = rest.AcceptLanguage(string(accept))
	}
	c.Language, c.LanguageAsked = r.asked, r.asked != ""
	if c.Language == "" {
		c.Language = r.srv.opts.DefaultLanguage
	}
}

// language applies the parameter _requesterLanguage, which outranks the headers.
func (r *Request) language(asked string) {
	if l := rest.LanguageOf(asked); l != "" {
		r.asked, r.Caller.Language, r.Caller.LanguageAsked = l, l, true
	}
}

// arena copies many small texts into one allocation.
type arena struct{ b strings.Builder }

func (a *arena) copy(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	start := a.b.Len()
	a.b.Write(p)
	return a.b.String()[start:]
}

// text is copy for a text that will be stored: valid UTF-8 of at most limit bytes.
func (a *arena) text(p []byte, limit int) string {
	p = p[:min(len(p), limit)]
	if !utf8.Valid(p) { // perhaps of a cut character
		return strings.ToValidUTF8(string(p), "")
	}
	return a.copy(p)
}

// methodName copies a method without allocating for the usual ones.
func methodName(m []byte) string {
	for _, known := range methods {
		if string(m) == known {
			return known
		}
	}
	return string(m)
}

var methods = [...]string{"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"}

// maxClientID is the longest request id of a client, in bytes.
const maxClientID = 64

// requestIDBytes are the bytes of a client's id, which cannot break a line of the log or imitate another part of it.
var requestIDBytes = setOf(alphanumeric + "._-")

// wait reads Prefer: wait=N (RFC 7240).
func wait(prefer []byte) time.Duration {
	if len(prefer) == 0 {
		return 0
	}
	for part := range strings.SplitSeq(string(prefer), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		value, _, _ = strings.Cut(value, ";")
		n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
		if err != nil {
			return 0
		}
		return min(time.Duration(n)*time.Second, maxWait)
	}
	return 0
}

func peerOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		if ip, ok := netip.AddrFromSlice(tcp.IP); ok {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}
