package rest

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/kit/fault"

	"github.com/danielgtaylor/huma/v2"
)

// tokenDocs describes the response headers that carry a token.
var tokenDocs = map[string]string{
	"p-auth": "Token of the challenge.",
	"x-auth": "Session token, with execResult of a completed login; " +
		"returned only to the client that started the challenge.",
	"ot-auth": "One-time token, with execResult of a completed password reset; " +
		"returned only to the client that started the challenge.",
}

// sharedHeaders are the response headers that the document defines once.
var sharedHeaders = map[string]struct{ name, doc, kind string }{
	"x-request-id":  {"RequestId", "Id of the request in the log, the audit log and problems.", "string"},
	"retry-after":   {"RetryAfter", "Seconds to wait before a retry.", "integer"},
	"link":          {"Link", `The next page as <address>; rel="next" (RFC 8288); omitted on the last page.`, "string"},
	"x-total-count": {"TotalCount", "Total number of records, if count=true was sent.", "integer"},
	"etag":          {"ETag", "Version of the record, for If-None-Match.", "string"},
	"device-signature-nonce": {"DeviceSignatureNonce",
		"A nonce that the next device-signature must carry.", "string"},
	"dpop-nonce": {"DPoPNonce", "A nonce that the next proof in dpop must carry.", "string"},
}

// header refers to a shared header and defines it at its first use.
func (d *document) header(r *huma.Response, name string) {
	h := sharedHeaders[name]
	if d.Components.Headers[h.name] == nil {
		d.Components.Headers[h.name] = &huma.Param{Description: h.doc, Schema: &huma.Schema{Type: h.kind}}
	}
	r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + h.name}
}

func (d *document) success(e *Endpoint) *huma.Response {
	r := d.response("Success.", "x-request-id")
	_, paged := e.In.FieldByName("Paging")
	if _, recent := e.In.FieldByName("Recent"); paged || recent {
		d.header(r, "link")
		d.header(r, "x-total-count")
	}
	if e.Tagged {
		d.header(r, "etag")
	}
	tokens := e.Tokens
	if e.Starts != "" {
		tokens = []string{"p-auth"}
	}
	for _, name := range tokens {
		r.Headers[name] = &huma.Param{Description: tokenDocs[name], Schema: &huma.Schema{Type: "string"}}
	}
	kinds := e.Produces
	if kinds == nil {
		kinds = []string{TypeJSON}
	}
	r.Content = map[string]*huma.MediaType{}
	for _, kind := range kinds {
		r.Content[kind] = &huma.MediaType{Schema: d.answer(e)}
	}
	return r
}

// answer is the schema of a success.
func (d *document) answer(e *Endpoint) *huma.Schema {
	out := e.Out
	switch {
	case e.Schema != "":
		return d.types.use(e.Schema)
	case e.Produces != nil:
		return &huma.Schema{Type: "string", Format: "binary"}
	case e.Starts != "":
		out = d.challenge
	}
	if out.Kind() == reflect.Struct && strings.HasPrefix(out.Name(), "Reply[") && out.PkgPath() == kitPath {
		body, _ := out.FieldByName("Body")
		out = body.Type
	}
	if out == reflect.TypeFor[None]() {
		return d.types.use("Empty")
	}
	return d.types.output(out)
}

// refusals lists the refusals of an endpoint. x-codes has every code by its status. Each status of the endpoint's own
// codes has a response; the codes that every endpoint of its kind can answer share the default response. There is one
// component for each status, so that a generated client has few types.
func (d *document) refusals(op *huma.Operation, e *Endpoint) {
	common := commonCodes(e)
	codes := slices.Concat(common, e.Errors)
	slices.Sort(codes)
	codes = slices.Compact(codes)
	byStatus := map[string][]fault.Code{}
	for _, c := range codes {
		status := strconv.Itoa(StatusOf(c))
		byStatus[status] = append(byStatus[status], c)
	}
	op.Extensions["x-codes"] = byStatus
	if op.Responses["default"] = d.own(op, e, common); op.Responses["default"] == nil {
		op.Responses["default"] = d.shared("Refusal", func() *huma.Response {
			return d.problem("A refusal. x-codes of the operation lists its codes by status. In addition, HTTP can cause "+
				"METHOD_NOT_ALLOWED (405), REQUEST_TIMEOUT (408) and HEADERS_TOO_LARGE (431) on every path.", anyRefusal...)
		})
	}
	for status, codes := range byStatus {
		if slices.ContainsFunc(codes, func(c fault.Code) bool { return !slices.Contains(common, c) }) {
			if op.Responses[status] = d.own(op, e, codes); op.Responses[status] == nil {
				op.Responses[status] = d.refusal(codes)
			}
		}
	}
	if e.Tagged {
		op.Responses["304"] = d.shared("NotModified", func() *huma.Response {
			return d.response("The version of the client is current.", "x-request-id", "etag")
		})
	}
	if Solo(*e) == "" {
		op.Responses["202"] = d.shared("Waiting", func() *huma.Response {
			r := d.response("If the configuration requires an approval: the request is executed after a second person "+
				"approves it.", "x-request-id")
			r.Content = map[string]*huma.MediaType{TypeJSON: {Schema: d.types.use("WaitingRequest")}}
			return r
		})
	}
}

// commonCodes are the codes that every endpoint with the same credential and marks can answer.
func commonCodes(e *Endpoint) []fault.Code {
	codes := []fault.Code{fault.InvalidField, fault.AccessDenied, fault.RateLimited, fault.PayloadTooLarge,
		fault.UnsupportedMedia, fault.Internal, fault.Unavailable, fault.Overloaded, fault.Draining}
	add := func(when bool, more ...fault.Code) {
		if when {
			codes = append(codes, more...)
		}
	}
	session := e.Credential.TakesSession()
	add(e.Credential != NoAuth && e.Credential != Device, fault.Unauthenticated, fault.TokenExpired, fault.TokenRevoked)
	add(session, fault.Forbidden, fault.DPoPInvalid)
	add(session || e.Credential == PAuth || e.Credential == PAuthOrDevice || e.Credential == OTAuth, fault.GeoBlocked)
	add(e.Credential.takesTenant(), fault.TenantMismatch)
	add(e.Credential == Device || e.Credential == PAuthOrDevice,
		fault.DeviceSignatureRequired, fault.DeviceSignatureInvalid)
	add(e.IPFilter || e.Credential == TenantOrService || e.Credential == Service, fault.IPNotAllowed)
	add(e.OTP, fault.OTPRequired, fault.OTPInvalid)
	add(e.Repeatable, fault.IdempotencyConflict, fault.IdempotencyMismatch)
	return codes
}

// refusal refers to the response of the status of codes, and adds the codes to those that it lists.
func (d *document) refusal(codes []fault.Code) *huma.Response {
	status := StatusOf(codes[0])
	name := strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status))
	r := d.Components.Responses[name]
	if r == nil {
		r = d.problem("")
		d.Components.Responses[name] = r
	}
	listed, _ := r.Extensions["x-codes"].([]fault.Code)
	listed = append(listed, codes...)
	slices.Sort(listed)
	listed = slices.Compact(listed)
	r.Extensions = map[string]any{"x-codes": listed}
	words := make([]string, len(listed))
	for i, c := range listed {
		words[i] = string(c) + ": " + registry[c].en
		if registry[c].retry || c == fault.ChallengeNotCompleted || c == fault.IdempotencyConflict {
			d.header(r, "retry-after")
		}
		if c == fault.DeviceSignatureRequired || c == fault.DeviceSignatureInvalid {
			d.header(r, "device-signature-nonce")
		}
		if c == fault.DPoPInvalid {
			d.header(r, "dpop-nonce")
		}
	}
	r.Description = strings.Join(words, ". ") + "."
	return &huma.Response{Ref: responsePrefix + name}
}

const responsePrefix = "#/components/responses/"

// own returns a response with the endpoint's own body of a refusal (RefuseWith) beside the problem; nil if no code has
// such a body.
func (d *document) own(op *huma.Operation, e *Endpoint, codes []fault.Code) *huma.Response {
	for _, c := range codes {
		body := e.Refusal(StatusOf(c), fault.New(c, "example"))
		if body == nil {
			continue
		}
		return d.shared("RefusalOf"+capital(op.OperationID), func() *huma.Response {
			r := d.problem("A refusal as problem details, or in the form of the endpoint.", anyRefusal...)
			r.Content[TypeJSON] = &huma.MediaType{Schema: d.types.output(reflect.TypeOf(body))}
			return r
		})
	}
	return nil
}

// shared refers to the response of a name, which make makes at its first use.
func (d *document) shared(name string, make func() *huma.Response) *huma.Response {
	if d.Components.Responses[name] == nil {
		d.Components.Responses[name] = make()
	}
	return &huma.Response{Ref: responsePrefix + name}
}

// anyRefusal are the headers of a problem of any code.
var anyRefusal = []string{"retry-after", "device-signature-nonce", "dpop-nonce"}

func (d *document) problem(description string, headers ...string) *huma.Response {
	r := d.response(description, headers...)
	r.Content = map[string]*huma.MediaType{TypeProblem: {Schema: d.types.use("Problem")}}
	return r
}

func (d *document) response(description string, headers ...string) *huma.Response {
	r := &huma.Response{Description: description, Headers: map[string]*huma.Param{}}
	for _, name := range headers {
		d.header(r, name)
	}
	return r
}
