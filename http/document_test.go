package httpapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	httpapi "castellan/http"

	"github.com/getkin/kin-openapi/openapi3"
)

// published is the document as a client reads it.
func published(t *testing.T, server string) *openapi3.T {
	t.Helper()
	text, err := httpapi.OpenAPI("1", server)
	must(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(text)
	must(t, err)
	must(t, doc.Validate(t.Context()))
	return doc
}

// Every value that the document offers can be sent: it is of its field's type.
func TestValuesOfTheDocumentFit(t *testing.T) {
	doc := published(t, "")
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
	doc := published(t, "")
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			want := map[string]string{complete: "ot-auth x-auth", result: "ot-auth x-auth", login: "p-auth"}[path]
			if op.Extensions["x-starts-action"] != nil {
				want = "p-auth"
			}
			names := slices.Sorted(maps.Keys(op.Responses.Value("200").Value.Headers))
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s %s sends %q, want %q", method, path, got, want)
			}
			if op.Parameters.GetByInAndName("header", "prefer") != nil != (path == result) {
				t.Errorf("%s %s takes prefer", method, path)
			}
		}
	}
}

// What the interface says of single fields is what the document says.
func TestFieldsOfTheDocument(t *testing.T) {
	doc := published(t, "")
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
	if code := body.Properties["recoveryCode"].Value; !recover.Required || !slices.Equal(body.Required, []string{"recoveryCode"}) || !strings.Contains(code.Description, "recovery_code") {
		t.Errorf("recoveryCode: %v, required %v", code.Description, body.Required)
	}
}

// Paths resolve against the server that the document names; it names none where
// they lie at the root of where it was read (D-GEN-15).
func TestServerOfTheDocument(t *testing.T) {
	if s := published(t, "").Servers; len(s) != 0 {
		t.Errorf("servers: %v", s)
	}
	for _, server := range []string{"/auth-service", "https://id.example.com/auth"} {
		if s := published(t, server).Servers; len(s) != 1 || s[0].URL != server {
			t.Errorf("servers: %v, want %s", s, server)
		}
	}
}

// Every operation has a name for generated clients and says what its summary does not.
func TestOperationsOfTheDocument(t *testing.T) {
	named := map[string]bool{}
	for _, e := range (httpapi.API{}).Endpoints() {
		if e.ID == "" || e.Description == "" || named[e.ID] {
			t.Errorf("%s: operation %q, described %q, named before: %v", e.Key(), e.ID, e.Description, named[e.ID])
		}
		named[e.ID] = true
	}
}
