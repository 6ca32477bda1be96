package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/fault"

	"github.com/danielgtaylor/huma/v2"
)

// Extra is what the document says beside the table.
type Extra struct {
	Description string
	ServerURL   string
	// Challenge is the type of what the Starter answers, {"challenge": …}.
	Challenge reflect.Type
}

// OpenAPI renders endpoints as an OpenAPI 3.1 document. The same table gives the
// same bytes. A GET's fields are listed as query parameters and a DELETE's as a
// body; that each also takes the other is said in words, because many tools
// refuse a document that says it twice.
func OpenAPI(title, version string, endpoints []Endpoint, extra ...Extra) ([]byte, error) {
	var x Extra
	if len(extra) > 0 {
		x = extra[0]
	}
	reg := huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
	d := document{types: newSchemas(reg.Map()), challenge: x.Challenge}
	d.problem()
	doc := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: title, Version: version, Description: x.Description},
		Components: &huma.Components{Schemas: reg, SecuritySchemes: securitySchemes()}}
	if x.ServerURL != "" {
		doc.Servers = []*huma.Server{{URL: x.ServerURL}}
	}
	seen := map[string]bool{}
	for i := range endpoints {
		e := &endpoints[i]
		if seen[e.Key()] {
			return nil, fmt.Errorf("openapi: %s is defined twice", e.Key())
		}
		seen[e.Key()] = true
		if e.Section != "" && !slices.ContainsFunc(doc.Tags, func(t *huma.Tag) bool { return t.Name == e.Section }) {
			doc.Tags = append(doc.Tags, &huma.Tag{Name: e.Section})
		}
		doc.AddOperation(d.operation(e))
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

type document struct {
	types     *schemas
	challenge reflect.Type
}

const problemName = "Problem"

// problem registers the body of refusals.
func (d document) problem() {
	text := func(doc string) *huma.Schema { return &huma.Schema{Type: "string", Description: doc} }
	d.types.named[problemName] = &huma.Schema{Type: "object", Description: "RFC 9457 problem details.",
		Properties: map[string]*huma.Schema{
			"type": text("urn:castellan:problem:<code>"), "title": text("The code in words."),
			"status": {Type: "integer"}, "code": text("Stable code of the refusal."),
			"detail": text("What was wrong, in English."), "message": text("What was wrong, in the client's language."),
			"field": text("The first faulty field."),
			"errors": {Type: "array", Items: &huma.Schema{Type: "object", Required: []string{"field", "message"},
				Properties: map[string]*huma.Schema{"field": {Type: "string"}, "message": {Type: "string"}}}},
			"attemptsLeft": {Type: "integer", Description: "With OTP_INVALID: how many attempts remain."},
			"requestId":    text("Equal to the header x-request-id."),
		},
		Required: []string{"type", "title", "status", "code", "detail", "message", "requestId"}}
}

func securitySchemes() map[string]*huma.SecurityScheme {
	header := func(name, doc string) *huma.SecurityScheme {
		return &huma.SecurityScheme{Type: "apiKey", In: "header", Name: name, Description: doc}
	}
	return map[string]*huma.SecurityScheme{
		"x-auth":           header("x-auth", "Session token."),
		"p-auth":           header("p-auth", "Token created with a challenge."),
		"ot-auth":          header("ot-auth", "One-time token of a completed password reset."),
		"cron-auth":        header("cron-auth", "Credential of a scheduler: <client>.<secret>."),
		"device-signature": header("device-signature", "Proof of possession of a registered device's key, a JWS."),
	}
}

// schemes are the alternatives of a credential.
var schemes = map[Credential][]string{
	User: {"x-auth"}, Tenant: {"x-auth"}, PAuth: {"p-auth"}, PAuthOrDevice: {"p-auth", "device-signature"},
	OTAuth: {"ot-auth"}, Device: {"device-signature"}, TenantOrCron: {"x-auth", "cron-auth"},
}

func (d document) operation(e *Endpoint) *huma.Operation {
	op := &huma.Operation{Method: e.Method, Path: e.Path, OperationID: cmp.Or(e.ID, operationID(e)),
		Summary: e.Summary, Description: e.Description,
		Security: []map[string][]string{}, Responses: map[string]*huma.Response{},
		Extensions: map[string]any{"x-credential": e.Credential, "x-audience": e.Audience}}
	if e.Section != "" {
		op.Tags = []string{e.Section}
	}
	if e.Extension {
		op.Extensions["x-extension"] = true
	}
	if e.Reserved {
		op.Extensions["x-reserved"] = true
	}
	if e.Starts != "" {
		op.Extensions["x-starts-action"] = e.Starts
	}
	for _, s := range schemes[e.Credential] {
		op.Security = append(op.Security, map[string][]string{s: {}})
	}
	d.request(op, e)
	op.Responses["200"] = d.success(e)
	d.refusals(op, e)
	return op
}

// operationID is that of an endpoint without one: the method and the path's
// words, as in getAdminJobsId.
func operationID(e *Endpoint) string {
	id := strings.ToLower(e.Method)
	for _, word := range strings.FieldsFunc(e.Path, func(r rune) bool { return strings.ContainsRune("/-{}._", r) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func (d document) request(op *huma.Operation, e *Endpoint) {
	inPath := PathParams(e.Path)
	for i := range e.plan.fields {
		f := &e.plan.fields[i]
		switch {
		case slices.Contains(inPath, f.name):
			op.Parameters = append(op.Parameters, &huma.Param{Name: f.name, In: "path", Required: true, Schema: d.types.fieldSchema(f)})
		case e.Method == "GET":
			op.Parameters = append(op.Parameters, &huma.Param{Name: f.name, In: "query", Required: f.required, Schema: d.types.fieldSchema(f)})
		}
	}
	header := func(name, doc string) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "header", Description: doc, Schema: &huma.Schema{Type: "string"}})
	}
	if e.Repeatable {
		header("idempotency-key", "The same key and body get the first answer again, for 24 hours.")
	}
	if e.OTP {
		header("otp", "The caller's current authenticator code; also x-otp or the body's field otp.")
	}
	if e.Credential == Tenant || e.Credential == TenantOrCron {
		header("tenant-id", "If sent, it must name the tenant of the token.")
	}
	if e.Waits {
		header("prefer", "wait=N holds the request for up to N seconds, at most 30, until there is an outcome (RFC 7240).")
	}
	rest := d.types.object(e.plan.typ)
	for _, name := range inPath {
		delete(rest.Properties, name)
	}
	if e.Method == "GET" || len(rest.Properties) == 0 {
		return
	}
	schema := rest
	if len(inPath) == 0 {
		schema = d.types.input(e.plan.typ)
	} else {
		rest.Required = slices.DeleteFunc(rest.Required, func(n string) bool { return slices.Contains(inPath, n) })
	}
	op.RequestBody = &huma.RequestBody{Required: len(rest.Required) > 0,
		Content: map[string]*huma.MediaType{TypeJSON: {Schema: schema}}}
	if e.Method == "DELETE" {
		op.Description = strings.TrimSpace(op.Description + " The fields may also be sent in the query; the body wins.")
	}
}

// tokenDocs are the headers in which an answer brings a token.
var tokenDocs = map[string]string{
	"p-auth":  "Token of the challenge.",
	"x-auth":  "Session token, with execResult of a completed login; for whoever started the challenge alone.",
	"ot-auth": "One-time token, with execResult of a completed password reset; for whoever started the challenge alone.",
}

func (d document) success(e *Endpoint) *huma.Response {
	r := &huma.Response{Description: "OK", Headers: map[string]*huma.Param{}}
	tokens := e.Tokens
	media := cmp.Or(e.Produces, TypeJSON)
	schema := &huma.Schema{Type: "object"}
	switch out := e.Out; {
	case e.Produces != "":
		schema = &huma.Schema{Type: "string", Format: "binary"}
	case e.Starts != "":
		tokens = []string{"p-auth"}
		if d.challenge != nil {
			schema = d.types.output(d.challenge)
		}
	case out != reflect.TypeFor[None]():
		if out.Kind() == reflect.Struct && strings.HasPrefix(out.Name(), "Reply[") && out.PkgPath() == kitPath {
			body, _ := out.FieldByName("Body")
			out = body.Type
		}
		if out != reflect.TypeFor[None]() {
			schema = d.types.output(out)
		}
	}
	for _, name := range tokens {
		r.Headers[name] = &huma.Param{Description: tokenDocs[name], Schema: &huma.Schema{Type: "string"}}
	}
	r.Content = map[string]*huma.MediaType{media: {Schema: schema}}
	return r
}

// refusals lists an endpoint's codes by status: its own and those that every
// endpoint of its kind can answer.
func (d document) refusals(op *huma.Operation, e *Endpoint) {
	codes := append([]fault.Code{fault.InvalidField, fault.AccessDenied, fault.RateLimited, fault.PayloadTooLarge,
		fault.UnsupportedMedia, fault.Internal, fault.Unavailable, fault.Overloaded, fault.Draining}, e.Errors...)
	add := func(when bool, more ...fault.Code) {
		if when {
			codes = append(codes, more...)
		}
	}
	session := e.Credential == User || e.Credential == Tenant || e.Credential == TenantOrCron
	add(e.Credential != NoAuth && e.Credential != Device, fault.Unauthenticated, fault.TokenExpired, fault.TokenRevoked)
	add(session, fault.Forbidden)
	add(session || e.Credential == PAuth || e.Credential == PAuthOrDevice || e.Credential == OTAuth, fault.GeoBlocked)
	add(e.Credential == Tenant || e.Credential == TenantOrCron, fault.TenantMismatch)
	add(e.Credential == Device || e.Credential == PAuthOrDevice, fault.DeviceSignatureRequired, fault.DeviceSignatureInvalid)
	add(e.IPFilter, fault.IPNotAllowed)
	add(e.OTP, fault.OTPRequired, fault.OTPInvalid)
	add(e.Repeatable, fault.IdempotencyConflict, fault.IdempotencyMismatch)
	byStatus := map[int][]fault.Code{}
	for _, c := range codes {
		byStatus[StatusOf(c)] = append(byStatus[StatusOf(c)], c)
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		list := byStatus[status]
		slices.Sort(list)
		list = slices.Compact(list)
		enum := make([]any, len(list))
		words := make([]string, len(list))
		for i, c := range list {
			enum[i], words[i] = c, string(c)
		}
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: strings.Join(words, ", "),
			Content: map[string]*huma.MediaType{TypeProblem: {Schema: &huma.Schema{AllOf: []*huma.Schema{
				{Ref: schemaPrefix + problemName},
				{Type: "object", Properties: map[string]*huma.Schema{"code": {Type: "string", Enum: enum}}},
			}}}}}
	}
}
