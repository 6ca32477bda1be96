package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"castellan/domain/kit/fault"

	"github.com/danielgtaylor/huma/v2"
)

// Extra is the content of the document beside the table.
type Extra struct {
	Description string
	// ServerURL is the prefix of every path: a URL or a path; empty means "/".
	ServerURL string
	// Challenge is the type of the Starter's answer, {"challenge": …}.
	Challenge reflect.Type
	// Tags are the groups that the document lists its operations in, in order.
	Tags []Tag
	// Examples are executed examples by operation id.
	Examples map[string]Sample
	// Schemas are tables of named JSON Schemas, for details that Go types cannot express. A field
	// refers to one with the tag schema:"Name".
	Schemas [][]byte
}

// Tag is one group of operations, made of one or more sections. Area is the subject that it belongs to; tags of
// one area are a group of x-tagGroups, which many viewers show.
type Tag struct {
	Area, Name, Description string
	Sections                []string
}

// OpenAPI renders endpoints as an OpenAPI 3.1 document. The same table gives the same bytes.
// The fields of a GET are listed as query parameters and those of a DELETE as a body. Each
// also accepts the other form. Only the text says so, because many tools refuse a document
// that lists both.
//
// It returns an error for a duplicate endpoint or operationId, a section without a tag, an
// undefined schema, and an example that is no JSON.
func OpenAPI(title, version string, endpoints []Endpoint, x Extra) ([]byte, error) {
	d, err := newDocument(x)
	if err != nil {
		return nil, err
	}
	d.Info = &huma.Info{Title: title, Version: version, Description: x.Description,
		License: &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"},
		Contact: &huma.Contact{Name: "The operator of this installation"}}
	seen := map[string]bool{}
	for i := range endpoints {
		e := &endpoints[i]
		op := d.operation(e)
		if seen[e.Key()] || seen[op.OperationID] {
			return nil, fmt.Errorf("openapi: %s (%s) is defined twice", e.Key(), op.OperationID)
		}
		seen[e.Key()], seen[op.OperationID] = true, true
		if err := d.tag(op, e, x.Tags); err != nil {
			return nil, err
		}
		if err := d.example(op, e, x.Examples[op.OperationID]); err != nil {
			return nil, err
		}
		d.AddOperation(op)
	}
	if err := d.types.complete(); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	text, err := json.Marshal(d.OpenAPI)
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
	*huma.OpenAPI
	types     *schemas
	challenge reflect.Type
}

func newDocument(x Extra) (*document, error) {
	reg := huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)
	types, err := newSchemas(reg.Map(), append([][]byte{kitSchemas}, x.Schemas...))
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	doc := &huma.OpenAPI{OpenAPI: "3.1.0",
		Servers: []*huma.Server{{URL: cmp.Or(x.ServerURL, "/")}},
		Components: &huma.Components{Schemas: reg, Responses: map[string]*huma.Response{},
			Parameters: map[string]*huma.Param{}, Headers: map[string]*huma.Header{},
			SecuritySchemes: map[string]*huma.SecurityScheme{}}}
	for _, t := range x.Tags {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: t.Name, Description: t.Description})
	}
	doc.Extensions = map[string]any{"x-tagGroups": tagGroups(x.Tags)}
	return &document{OpenAPI: doc, types: types, challenge: x.Challenge}, nil
}

// tagGroup is an area and the names of its tags.
type tagGroup struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

// tagGroups lists the areas in the order of their first tags.
func tagGroups(tags []Tag) (groups []tagGroup) {
	for _, t := range tags {
		i := slices.IndexFunc(groups, func(g tagGroup) bool { return g.Name == t.Area })
		if i < 0 {
			i, groups = len(groups), append(groups, tagGroup{Name: t.Area})
		}
		groups[i].Tags = append(groups[i].Tags, t.Name)
	}
	return groups
}

// tag puts an operation into the group of its section.
func (d *document) tag(op *huma.Operation, e *Endpoint, tags []Tag) error {
	for _, t := range tags {
		if slices.Contains(t.Sections, e.Section) {
			op.Tags = []string{t.Name}
			return nil
		}
	}
	return fmt.Errorf("openapi: %s: no tag holds the section %q", e.Key(), e.Section)
}

func (d *document) operation(e *Endpoint) *huma.Operation {
	op := &huma.Operation{Method: e.Method, Path: e.Path, OperationID: e.ID,
		Summary: e.Summary, Description: e.Description,
		Security: d.security(e), Responses: map[string]*huma.Response{},
		Extensions: map[string]any{"x-credential": e.Credential, "x-audience": e.Audience}}
	if e.Extension {
		op.Extensions["x-extension"] = true
	}
	if e.Reserved {
		op.Extensions["x-reserved"] = true
	}
	if e.Starts != "" {
		op.Extensions["x-starts-action"] = e.Starts
	}
	d.request(op, e)
	op.Responses["200"] = d.success(e)
	d.refusals(op, e)
	return op
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// schemes are the alternatives of a credential.
var schemes = map[Credential][]string{
	User: {"x-auth"}, Tenant: {"x-auth"}, PAuth: {"p-auth"}, PAuthOrDevice: {"p-auth", "device-signature"},
	OTAuth: {"ot-auth"}, Device: {"device-signature"}, TenantOrCron: {"x-auth", "cron-auth"},
	TenantOrService: {"x-auth", "service-auth"}, Service: {"service-auth"},
}

var schemeDocs = map[string]string{
	"x-auth":           "Session token.",
	"p-auth":           "Token of a challenge.",
	"ot-auth":          "One-time token of a completed password reset.",
	"cron-auth":        "Credential of a scheduler: <client>.<secret>.",
	"service-auth":     "Key of a service client: <name>.<secret>.",
	"device-signature": "Proof of possession of a registered device's key, a JWS.",
	"dpop":             "Proof of possession of the session's key, a JWS of type dpop+jwt (RFC 9449).",
}

// security lists the credentials that a request must carry. If a session must also sign with
// its device, the request carries both.
func (d *document) security(e *Endpoint) []map[string][]string {
	alternatives := []map[string][]string{}
	need := func(in map[string][]string, name string) {
		in[name] = []string{}
		d.Components.SecuritySchemes[name] = &huma.SecurityScheme{Type: "apiKey", In: "header", Name: name,
			Description: schemeDocs[name]}
	}
	for _, name := range schemes[e.Credential] {
		one := map[string][]string{}
		need(one, name)
		if e.Credential == User && slices.Contains(e.Errors, fault.DeviceSignatureRequired) {
			need(one, "device-signature")
		}
		if e.Renewal {
			need(one, "dpop")
		}
		alternatives = append(alternatives, one)
	}
	return alternatives
}

// sharedParam is a header of requests that many operations take.
type sharedParam struct{ name, header, doc string }

var (
	paramKey = sharedParam{"IdempotencyKey", "idempotency-key",
		"Repeats with the same key and body return the first response, for 24 hours."}
	paramOTP = sharedParam{"Otp", "otp",
		"The caller's current authenticator code; alternatives: x-otp, or otp in the body."}
	paramTenant = sharedParam{"TenantId", "tenant-id", "If sent, it must equal the tenant of the token."}
	paramTags   = sharedParam{"IfNoneMatch", "if-none-match",
		"ETag of the version that the client has; 304 if it is current."}
	paramAssertion = sharedParam{"WebauthnAssertion", "webauthn-assertion",
		"AuthenticationResponseJSON of a passkey, in base64url; for a push, in place of device-signature."}
	paramRecovery = sharedParam{"RecoveryCode", "recovery-code",
		"A recovery code of the authenticator, in place of the passkey that an account with one needs. It is used up."}
	paramProof = sharedParam{"DPoP", "dpop",
		"Proof of a key to which the session is bound, a JWS of type dpop+jwt (RFC 9449)."}
	paramPrefer = sharedParam{"Prefer", "prefer",
		"wait=N delays the response until there is an outcome, for at most N seconds, up to 30 (RFC 7240)."}
)

func (d *document) request(op *huma.Operation, e *Endpoint) {
	inPath := PathParams(e.Path)
	for i := range e.plan.fields {
		f := &e.plan.fields[i]
		in := "query"
		switch {
		case slices.Contains(inPath, f.name):
			in = "path"
		case e.Method != "GET":
			continue
		}
		s := d.types.fieldSchema(f)
		p := &huma.Param{Name: f.name, In: in, Required: in == "path" || f.required, Schema: s, Description: s.Description}
		s.Description = ""
		op.Parameters = append(op.Parameters, p)
	}
	for _, h := range []struct {
		sharedParam
		takes bool
	}{
		{paramKey, e.Repeatable}, {paramOTP, e.OTP}, {paramAssertion, e.Assertion}, {paramRecovery, e.Recovers},
		{paramPrefer, e.Waits},
		{paramTags, e.Tagged}, {paramProof, slices.Contains(e.Errors, fault.DPoPInvalid)},
		{paramTenant, e.Credential.takesTenant()},
	} {
		if h.takes {
			d.Components.Parameters[h.name] = &huma.Param{Name: h.header, In: "header", Description: h.doc,
				Schema: &huma.Schema{Type: "string"}}
			op.Parameters = append(op.Parameters, &huma.Param{Ref: "#/components/parameters/" + h.name})
		}
	}
	if e.Method == "GET" {
		return
	}
	body := d.types.object(e.plan.typ)
	for _, name := range inPath {
		delete(body.Properties, name)
	}
	if len(body.Properties) == 0 {
		return
	}
	body.Required = slices.DeleteFunc(body.Required, func(n string) bool { return slices.Contains(inPath, n) })
	op.RequestBody = &huma.RequestBody{Required: len(body.Required) > 0, Content: map[string]*huma.MediaType{
		TypeJSON: {Schema: d.types.define(capital(op.OperationID)+"Request", body)}}}
	if e.Method == "DELETE" {
		op.Description = strings.TrimSpace(op.Description +
			" The fields can also be sent in the query; the body takes precedence.")
	}
}
