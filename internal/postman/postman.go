// Package postman creates a collection for Postman (format 2.1) from the interface document. It has a folder for each
// of its tags, a request for each operation, variables for the base URL and the tokens. A script of the collection
// stores the tokens of an answer, so a login is two requests and everything else follows.
//
// The one idea: everything comes from the document, in its order, so the file is golden. Start reading at Collection.
package postman

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Format names the version of the format in a collection.
const Format = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"

type collection struct {
	Info struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Schema      string `json:"schema"`
	} `json:"info"`
	Item     []folder   `json:"item"`
	Event    []event    `json:"event"`
	Variable []variable `json:"variable"`
}

type folder struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Item        []item `json:"item"`
}

type item struct {
	Name    string  `json:"name"`
	Request request `json:"request"`
}

type request struct {
	Method      string  `json:"method"`
	Description string  `json:"description"`
	Header      []field `json:"header"`
	URL         address `json:"url"`
	Body        *body   `json:"body,omitempty"`
}

type address struct {
	Raw      string     `json:"raw"`
	Host     []string   `json:"host"`
	Path     []string   `json:"path"`
	Query    []field    `json:"query,omitempty"`
	Variable []variable `json:"variable,omitempty"`
}

// field is a header or a part of the query.
type field struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
}

type variable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

type body struct {
	Mode    string `json:"mode"`
	Raw     string `json:"raw"`
	Options struct {
		Raw struct {
			Language string `json:"language"`
		} `json:"raw"`
	} `json:"options"`
}

type event struct {
	Listen string `json:"listen"`
	Script struct {
		Type string   `json:"type"`
		Exec []string `json:"exec"`
	} `json:"script"`
}

// tokens are the headers of credentials and the variables that hold them.
var tokens = []struct{ header, variable string }{{"x-auth", "xAuth"}, {"p-auth", "pAuth"}, {"ot-auth", "otAuth"},
	{"cron-auth", "cronAuth"}, {"device-signature", "deviceSignature"},
	{"dpop", "dpop"}}

// keep is the script that runs after every request.
var keep = []string{
	`for (const [header, name] of [['x-auth', 'xAuth'], ['p-auth', 'pAuth'], ['ot-auth', 'otAuth']]) {`,
	`  const token = pm.response.headers.get(header);`,
	`  if (token) pm.collectionVariables.set(name, token);`,
	`}`,
	`let answer;`,
	`try { answer = pm.response.json(); } catch (noJSON) { answer = null; }`,
	`const first = answer?.challenge?.methodList?.[0];`,
	`if (first) {`,
	`  pm.collectionVariables.set('methodId', first.id);`,
	`  pm.collectionVariables.set('method', first.name);`,
	`}`,
}

const usage = " Set the variables baseUrl, email and password. Log in, set code to what was sent, and answer the " +
	"challenge (Challenges): the collection keeps the tokens and the first method of the answers in its variables. " +
	"Parts that are switched off are optional."

// Collection creates the collection of an OpenAPI document.
func Collection(document []byte) ([]byte, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	var c collection
	c.Info.Name, c.Info.Description, c.Info.Schema = doc.Info.Title, doc.Info.Description+usage, Format
	for _, tag := range doc.Tags {
		f := folder{Name: tag.Name, Description: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
			operations := doc.Paths.Value(path).Operations()
			for _, method := range slices.Sorted(maps.Keys(operations)) {
				if op := operations[method]; slices.Contains(op.Tags, tag.Name) {
					f.Item = append(f.Item, item{op.Summary, requestOf(method, path, op)})
				}
			}
		}
		c.Item = append(c.Item, f)
	}
	e := event{Listen: "test"}
	e.Script.Type, e.Script.Exec = "text/javascript", keep
	c.Event = []event{e}
	c.Variable = []variable{{"baseUrl", "http://127.0.0.1:8080"}}
	for _, t := range tokens {
		c.Variable = append(c.Variable, variable{Key: t.variable})
	}
	for _, key := range []string{"email", "password", "code", "methodId", "method"} {
		c.Variable = append(c.Variable, variable{Key: key})
	}
	return written(c, "\t")
}

func requestOf(method, path string, op *openapi3.Operation) request {
	r := request{Method: method, Description: op.Description, Header: []field{}}
	r.URL = address{Host: []string{"{{baseUrl}}"}}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimSuffix(name, "}")
			part, r.URL.Variable = ":"+name, append(r.URL.Variable, variable{Key: name})
		}
		r.URL.Path = append(r.URL.Path, part)
	}
	for n, alternative := range *op.Security {
		for _, t := range tokens {
			if _, is := alternative[t.header]; is {
				r.Header = append(r.Header, field{t.header, "{{" + t.variable + "}}", "", n > 0})
			}
		}
	}
	for _, ref := range op.Parameters {
		p := ref.Value
		f := field{p.Name, "", p.Description, !p.Required}
		switch p.In {
		case openapi3.ParameterInHeader:
			r.Header = append(r.Header, f)
		case openapi3.ParameterInQuery:
			f.Value = text(sample(p.Schema, 0), "")
			r.URL.Query = append(r.URL.Query, f)
		}
	}
	r.URL.Raw = "{{baseUrl}}/" + strings.Join(r.URL.Path, "/")
	for n, q := range slices.DeleteFunc(slices.Clone(r.URL.Query), func(q field) bool { return q.Disabled }) {
		r.URL.Raw += string("?&"[min(n, 1)]) + q.Key + "=" + q.Value
	}
	if op.RequestBody != nil {
		r.Header = append(r.Header, field{Key: "content-type", Value: "application/json"})
		schema := op.RequestBody.Value.Content["application/json"].Schema
		value := sample(schema, 0)
		if own := bodies[op.OperationID]; own != nil {
			value = own
		}
		r.Body = &body{Mode: "raw", Raw: text(value, "  ")}
		if o, is := value.(map[string]any); is {
			r.Description += optional(schema.Value, o)
		}
		r.Body.Options.Raw.Language = "json"
	}
	return r
}

// optional names the fields of a body that a request omits.
func optional(s *openapi3.Schema, sent map[string]any) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if _, is := sent[name]; !is {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return " Optional fields: " + strings.Join(names, ", ") + "."
}

// bodies are the bodies of the requests of a login.
var bodies = map[string]map[string]any{
	"login":             {"email": "{{email}}", "password": "{{password}}"},
	"completeChallenge": {"methodId": "{{methodId}}", "method": "{{method}}", "value": "{{code}}"},
	"renewMethod":       {"methodId": "{{methodId}}", "method": "{{method}}"},
}

// text returns a value in the form of a query and a body.
func text(v any, indent string) string {
	if s, is := v.(string); is {
		return s
	}
	b, _ := written(v, indent) // of a JSON document
	return strings.TrimSuffix(string(b), "\n")
}

func written(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return out.Bytes(), err
}

// maxDepth ends a schema that contains itself.
const maxDepth = 6

// sample returns a value of a schema: its example if it has one.
func sample(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || depth > maxDepth {
		return nil
	}
	s := ref.Value
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Example != nil:
		return s.Example
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	for _, choice := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
		if len(choice) > 0 {
			return sample(choice[0], depth+1)
		}
	}
	switch {
	case s.Type.Includes("object"):
		return object(s, depth)
	case s.Type.Includes("array"):
		if one := sample(s.Items, depth+1); one != nil {
			return []any{one}
		}
		return []any{}
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		if s.Min != nil {
			return max(*s.Min, 1)
		}
		return 1
	case s.Type.Includes("boolean"):
		return true
	case s.Type.Includes("string"):
		return ""
	}
	return nil
}

// object contains the required fields. If only an id is required, it contains all fields: an update needs a change.
func object(s *openapi3.Schema, depth int) map[string]any {
	all := !slices.ContainsFunc(s.Required, func(name string) bool { return name != "id" })
	o := map[string]any{}
	for name, p := range s.Properties {
		if all || slices.Contains(s.Required, name) {
			o[name] = sample(p, depth+1)
		}
	}
	return o
}
