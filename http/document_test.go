package httpapi_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/internal/apidoc"

	"github.com/getkin/kin-openapi/openapi3"
)

// published is the document as a client reads it.
func published(t *testing.T) *openapi3.T {
	t.Helper()
	return storetest.Value(parsed())(t)
}

var parsed = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := httpapi.OpenAPI("1", "", "")
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background(), openapi3.DisableExamplesValidation()) // see TestExamplesOfOperations
})

// Every value that the document offers can be sent: it is of its field's type.
func TestValuesOfTheDocumentFit(t *testing.T) {
	doc := published(t)
	values, seen := 0, map[*openapi3.Schema]bool{}
	var walk func(at string, ref *openapi3.SchemaRef)
	walk = func(at string, ref *openapi3.SchemaRef) {
		if ref == nil || ref.Value == nil || seen[ref.Value] {
			return
		}
		s := ref.Value
		seen[s] = true
		given := append(slices.Clone(s.Examples), s.Enum...)
		for _, v := range []any{s.Example, s.Default} {
			if v != nil {
				given = append(given, v)
			}
		}
		for _, v := range given {
			values++
			if err := s.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: %#v: %v", at, v, err)
			}
		}
		for name, p := range s.Properties {
			walk(at+"."+name, p)
		}
		for _, more := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
			for _, one := range more {
				walk(at, one)
			}
		}
		walk(at+"[]", s.Items)
		walk(at+"{}", s.AdditionalProperties.Schema)
	}
	for name, s := range doc.Components.Schemas {
		walk(name, s)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			at := method + " " + path
			for _, p := range op.Parameters {
				walk(at+" "+p.Value.Name, p.Value.Schema)
			}
			if op.RequestBody != nil {
				walk(at, op.RequestBody.Value.Content["application/json"].Schema)
			}
			for status, r := range op.Responses.Map() {
				for _, media := range r.Value.Content {
					walk(at+" "+status, media.Schema)
				}
			}
		}
	}
	if values < 100 {
		t.Errorf("%d values were looked at", values)
	}
}

// The headers that carry tokens are named where they are sent, and the one by
// which a client waits where it is heard (D-AUTH-04, D-PWD-05, D-2FA-19).
func TestHeadersOfTheDocument(t *testing.T) {
	const complete, result, login = "/auth/2fa/challenge/complete", "/auth/2fa/challenge/result", "/auth/login"
	const job, guarded = "/admin/jobs/{id}", "/guard/challenges/{id}"
	doc := published(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			want := map[string]string{complete: "ot-auth x-auth", result: "ot-auth x-auth", login: "p-auth x-auth",
				job: "etag", "/user/confirm-user-identity": "x-auth", "/auth/sessions/renew": "x-auth",
				"/integration/withdrawals": "p-auth",
				"/guard/challenges":        "p-auth"}[path]
			if op.Extensions["x-starts-action"] != nil {
				want = "p-auth"
			}
			if op.Parameters.GetByInAndName("query", "cursor") != nil && path != "/integration/events" { // a feed
				want = "link x-total-count"
			}
			want = strings.TrimSpace(want + " x-request-id")
			names := slices.Sorted(maps.Keys(op.Responses.Value("200").Value.Headers))
			wanted := strings.Fields(want)
			slices.Sort(wanted)
			storetest.Equal(t, strings.Join(names, " "), strings.Join(wanted, " "), method, path, "sends", want)
			if op.Parameters.GetByInAndName("header", "prefer") != nil != (path == result || path == job || path == guarded) {
				t.Errorf("%s %s takes prefer", method, path)
			}
		}
	}
}

// The document agrees with the interface about single fields.
func TestFieldsOfTheDocument(t *testing.T) {
	doc := published(t)
	answer := func(method, path string) *openapi3.Schema {
		s := doc.Paths.Value(path).GetOperation(method).Responses.Value("200").Value.Content["application/json"].Schema.Value
		if s.Items != nil {
			s = s.Items.Value
		}
		return s
	}
	result := answer("GET", "/auth/2fa/challenge/result")
	if e := result.Properties["execResult"]; !slices.Contains(result.Required, "execResult") || e.Ref == "" {
		t.Errorf("execResult of a result may be missing or null: %+v", e)
	}
	action := answer("GET", "/admin/system/mfa/actions")
	for _, name := range []string{"title", "infoTableHeaders"} {
		if p := action.Properties[name].Value; !p.Type.Is("object") {
			t.Errorf("%s has the type %v", name, p.Type)
		}
	}
	recover := doc.Paths.Value("/auth/totp/recover").Post.RequestBody.Value
	body := recover.Content["application/json"].Schema.Value
	if code := body.Properties["recoveryCode"].Value; !recover.Required ||
		!slices.Equal(body.Required, []string{"recoveryCode"}) || !strings.Contains(code.Description, "recovery_code") {
		t.Errorf("recoveryCode: %v, required %v", code.Description, body.Required)
	}
}

// Paths resolve against the server that the document names: the root of where it
// was read, unless the configuration names another place (D-GEN-15).
func TestServerOfTheDocument(t *testing.T) {
	for server, want := range map[string]string{
		"": "/", "/auth-service": "/auth-service", "https://id.example.com/auth": "https://id.example.com/auth",
	} {
		text := storetest.Value(httpapi.OpenAPI("1", server, ""))(t)
		var doc struct{ Servers []struct{ URL string } }
		storetest.Must(t, json.Unmarshal(text, &doc))
		if s := doc.Servers; len(s) != 1 || s[0].URL != want {
			t.Errorf("servers: %v, want %s", s, want)
		}
	}
}

// A refusal is one of few responses, one for each status, each with the one schema of problems. An operation lists its
// codes by status; the aliases of fields have names that differ from the field's in generated code.
func TestComponentsOfTheDocument(t *testing.T) {
	doc := published(t)
	if n := len(doc.Components.Responses); n > 15 {
		t.Errorf("%d responses are defined", n)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			codes, _ := op.Extensions["x-codes"].(map[string]any)
			for _, status := range []string{"429", "500", "503"} {
				if codes[status] == nil {
					t.Errorf("%s %s: x-codes lists no code of %s: %v", method, path, status, codes)
				}
			}
			for status, r := range op.Responses.Map() {
				if status != "200" && r.Ref == "" {
					t.Errorf("%s %s: the response %s is inline", method, path, status)
				}
				if status >= "400" && status < "600" && codes[status] == nil {
					t.Errorf("%s %s: no code of %s", method, path, status)
				}
			}
			if retry := op.Responses.Default().Value.Headers["retry-after"]; retry == nil {
				t.Errorf("%s %s: Retry-After is not declared", method, path)
			}
		}
	}
	for name, r := range doc.Components.Responses {
		if name == "NotModified" || name == "Waiting" {
			continue
		}
		storetest.Equal(t, r.Value.Content["application/problem+json"].Schema.Ref, "#/components/schemas/Problem",
			"response", name)
	}
	recovered := doc.Components.Schemas["RecoveredTotp"].Value.Properties
	for _, alias := range []string{"otp_auth_url", "qr_data_url"} {
		if p := recovered[alias].Value; !p.Deprecated || p.Extensions["x-go-name"] == nil {
			t.Errorf("%s: deprecated %v, %v", alias, p.Deprecated, p.Extensions)
		}
	}
	if need := *doc.Paths.Value("/auth/devices").Post.Security; len(need) != 1 || len(need[0]) != 2 {
		t.Errorf("a new device needs %v", need)
	}
	keys := doc.Paths.Value("/.well-known/jwks.json").Get.Responses.Value("200").Value
	if s := keys.Content["application/jwk-set+json"].Schema.Value; s.Properties["keys"] == nil {
		t.Error("the public keys are not described")
	}
	entity := doc.Components.Schemas["MfaExplanation"].Value.Properties["entityType"].Value
	if !entity.Type.Includes("null") || !slices.Contains(entity.Enum, nil) {
		t.Errorf("entityType may be null by its type alone: %v", entity.Enum)
	}
}

// The part of a tag is a document of its own with the operations of the tag and the components that they use. The parts
// together have every operation.
func TestPartsOfTheDocument(t *testing.T) {
	used := regexp.MustCompile(`"#/components/(\w+)/(\w+)"`)
	operations := 0
	for _, tag := range httpapi.Tags() {
		text := storetest.Value(httpapi.OpenAPI("1", "", tag))(t)
		doc := storetest.Value(openapi3.NewLoader().LoadFromData(text))(t)
		if len(doc.Tags) != 1 || doc.Tags[0].Name != tag {
			t.Errorf("the part of %s has the tags %v", tag, doc.Tags)
		}
		for _, item := range doc.Paths.Map() {
			operations += len(item.Operations())
		}
		names := map[string]bool{}
		for _, found := range used.FindAllSubmatch(text, -1) {
			names[string(found[1])+"/"+string(found[2])] = true
		}
		var parsed struct{ Components map[string]map[string]any }
		storetest.Must(t, json.Unmarshal(text, &parsed))
		delete(parsed.Components, "securitySchemes") // are named without a reference
		for kind, all := range parsed.Components {
			for name := range all {
				if !names[kind+"/"+name] {
					t.Errorf("the part of %s holds %s %s, which it does not use", tag, kind, name)
				}
			}
		}
	}
	if all := len(httpapi.Endpoints()); operations != all {
		t.Errorf("the parts have %d operations of %d", operations, all)
	}
}

// Every operation has a name for generated clients and says what its summary does not.
func TestOperationsOfTheDocument(t *testing.T) {
	named := map[string]bool{}
	for _, e := range httpapi.Endpoints() {
		if e.ID == "" || e.Description == "" || named[e.ID] {
			t.Errorf("%s: operation %q, described %q, named before: %v", e.Key(), e.ID, e.Description, named[e.ID])
		}
		named[e.ID] = true
	}
}

// Every operation has an example of its answer, and of its request if it takes parameters or a body. Each fits its
// schema.
func TestExamplesOfOperations(t *testing.T) {
	text := storetest.Value(httpapi.OpenAPI("1", "", ""))(t)
	schemas := storetest.Value(apidoc.Load(text))(t)
	for path, item := range published(t).Paths.Map() {
		for method, op := range item.Operations() {
			takes, sent, answered := op.RequestBody != nil, 0, 0
			at := "/paths/" + apidoc.Escape(path) + "/" + strings.ToLower(method)
			fits := func(example any, schema string) int {
				if example == nil {
					return 0
				}
				value := storetest.Value(json.Marshal(example))(t)
				if err := schemas.Validate(schema+"/schema", value); err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
				return 1
			}
			if takes {
				media := op.RequestBody.Value.Content["application/json"]
				sent += fits(media.Example, at+"/requestBody/content/application~1json")
			}
			for i, p := range op.Parameters {
				takes = takes || p.Value.In != "header"
				sent += fits(p.Value.Example, fmt.Sprintf("%s/parameters/%d", at, i))
			}
			for status, r := range op.Responses.Map() {
				for kind, media := range r.Value.Content {
					response := cmp.Or(strings.TrimPrefix(r.Ref, "#"), at+"/responses/"+status)
					content := response + "/content/" + apidoc.Escape(kind)
					answered += fits(media.Example, content)
					if refused := media.Examples[op.OperationID]; refused != nil {
						answered += fits(refused.Value.Value, content)
					}
				}
			}
			if takes && sent == 0 || answered == 0 {
				t.Errorf("%s %s has %d examples of a request and %d of an answer", method, path, sent, answered)
			}
		}
	}
}

// Every text and number of the schemas has an example, an enum or a default, so that readers
// and mock servers have sample answers.
func TestExamplesOfTheDocument(t *testing.T) {
	for name, ref := range published(t).Components.Schemas {
		for field, p := range ref.Value.Properties {
			s := p.Value
			scalar := s.Type.Includes("string") || s.Type.Includes("integer") || s.Type.Includes("number")
			if scalar && !s.Deprecated && len(s.Examples) == 0 && len(s.Enum) == 0 && s.Default == nil && p.Ref == "" {
				t.Errorf("%s.%s has no example", name, field)
			}
		}
	}
}
