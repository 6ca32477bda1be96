package rest

import (
	"cmp"
	"maps"
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
	r := &huma.Response{Description: "Success.", Headers: map[string]*huma.Param{}}
	d.header(r, "x-request-id")
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
	case e.Starts != "" && d.challenge != nil:
		out = d.challenge
	case e.Starts != "":
		return d.types.use("Empty")
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

// refusals lists an endpoint's codes by status: its own and those that every
// endpoint of its kind can answer.
func (d *document) refusals(op *huma.Operation, e *Endpoint) {
	byStatus := map[int][]fault.Code{}
	for _, c := range codesOf(e) {
		byStatus[StatusOf(c)] = append(byStatus[StatusOf(c)], c)
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		codes := byStatus[status]
		slices.Sort(codes)
		codes = slices.Compact(codes)
		op.Responses[strconv.Itoa(status)] = d.own(e, status, codes, d.refusal(codes))
	}
	if e.Tagged {
		op.Responses["304"] = d.notModified()
	}
	if Solo(*e) == "" {
		op.Responses["202"] = d.waiting()
	}
	op.Responses["default"] = d.other()
}

func codesOf(e *Endpoint) []fault.Code {
	codes := append([]fault.Code{fault.InvalidField, fault.AccessDenied, fault.RateLimited, fault.PayloadTooLarge,
		fault.UnsupportedMedia, fault.Internal, fault.Unavailable, fault.Overloaded, fault.Draining}, e.Errors...)
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

// families are codes that come together and share a name in the document.
var families = []struct {
	name  string
	codes []fault.Code
}{
	{"Unauthenticated", []fault.Code{fault.DPoPInvalid, fault.TokenExpired, fault.TokenRevoked, fault.Unauthenticated}},
	{"TokenRefused", []fault.Code{fault.TokenExpired, fault.TokenRevoked, fault.Unauthenticated}},
	{"DeviceSignature", []fault.Code{fault.DeviceSignatureInvalid, fault.DeviceSignatureRequired}},
	{"Unavailable", []fault.Code{fault.Draining, fault.Overloaded, fault.Unavailable}},
}

// refusalName is the name of a response: its codes in the spelling of types.
func refusalName(codes []fault.Code) (name string) {
	codes = slices.Clone(codes)
	for _, f := range families {
		if !slices.ContainsFunc(f.codes, func(c fault.Code) bool { return !slices.Contains(codes, c) }) {
			name += f.name
			codes = slices.DeleteFunc(codes, func(c fault.Code) bool { return slices.Contains(f.codes, c) })
		}
	}
	for _, c := range codes {
		for word := range strings.SplitSeq(strings.ToLower(string(c)), "_") {
			name += capital(word)
		}
	}
	return name
}

// refusal refers to the response of codes of one status and defines it at its
// first use.
func (d *document) refusal(codes []fault.Code) *huma.Response {
	name := refusalName(codes)
	if d.Components.Responses[name] == nil {
		words := make([]string, len(codes))
		for i, c := range codes {
			words[i] = string(c) + ": " + registry[c].en
		}
		r := d.problem(strings.Join(words, ". ") + ".")
		r.Extensions = map[string]any{"x-codes": codes}
		for _, c := range codes {
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
		d.Components.Responses[name] = r
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// own adds the endpoint's own body of a refusal (RefuseWith) to a shared response,
// under a name of its own.
func (d *document) own(e *Endpoint, status int, codes []fault.Code, shared *huma.Response) *huma.Response {
	for _, c := range codes {
		body := e.Refusal(status, fault.New(c, "example"))
		if body == nil {
			continue
		}
		r := *d.Components.Responses[refusalName(codes)]
		r.Content = maps.Clone(r.Content)
		r.Content[TypeJSON] = &huma.MediaType{Schema: d.types.output(reflect.TypeOf(body))}
		name := refusalName(codes) + "Of" + capital(cmp.Or(e.ID, operationID(e)))
		d.Components.Responses[name] = &r
		return &huma.Response{Ref: "#/components/responses/" + name}
	}
	return shared
}

// notModified refers to the response to a client that has the current version.
func (d *document) notModified() *huma.Response {
	const name = "NotModified"
	if d.Components.Responses[name] == nil {
		r := &huma.Response{Description: "The version of the client is current.", Headers: map[string]*huma.Param{}}
		d.header(r, "x-request-id")
		d.header(r, "etag")
		d.Components.Responses[name] = r
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// waiting refers to the response to a call that is pending a second person.
func (d *document) waiting() *huma.Response {
	const name = "Waiting"
	if d.Components.Responses[name] == nil {
		r := &huma.Response{Description: "If the configuration requires an approval: the request is executed after a " +
			"second person approves it.", Headers: map[string]*huma.Param{},
			Content: map[string]*huma.MediaType{TypeJSON: {Schema: d.types.use("WaitingRequest")}}}
		d.header(r, "x-request-id")
		d.Components.Responses[name] = r
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// other refers to the response of every refusal that an operation does not list.
func (d *document) other() *huma.Response {
	const name = "Refusal"
	if d.Components.Responses[name] == nil {
		r := d.problem("Any other refusal, such as METHOD_NOT_ALLOWED (405), REQUEST_TIMEOUT (408) and " +
			"HEADERS_TOO_LARGE (431). HTTP can cause them on every path.")
		d.header(r, "retry-after")
		d.Components.Responses[name] = r
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

func (d *document) problem(description string) *huma.Response {
	r := &huma.Response{Description: description, Headers: map[string]*huma.Param{},
		Content: map[string]*huma.MediaType{TypeProblem: {Schema: d.types.use("Problem")}}}
	d.header(r, "x-request-id")
	return r
}
