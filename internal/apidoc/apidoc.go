// Package apidoc checks answers of the service against its published document, docs/openapi.json, so that tests detect
// undocumented answers. Only tests use it.
//
// The one idea: every answer of a test is checked, not a selection. Start reading at Check.
package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is a published document. It is safe for concurrent use.
type Document struct {
	root     map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema // by their JSON pointer
}

const resource = "openapi.json"

// Load reads an OpenAPI 3.1 document.
func Load(text []byte) (*Document, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &Document{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.root, _ = parsed.(map[string]any)
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource(resource, parsed)
}

// Published returns the golden document of the repository in which the test runs.
var Published = sync.OnceValue(func() *Document {
	text, err := os.ReadFile(filepath.Join(Root(), "docs", "openapi.json"))
	if err != nil {
		panic(err)
	}
	d, err := Load(text)
	if err != nil {
		panic(err)
	}
	return d
})

// Root returns the folder of the repository in which the test runs: the nearest parent with go.mod.
func Root() string {
	root, err := os.Getwd()
	for err == nil && root != filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			break
		}
		root = filepath.Dir(root)
	}
	return root
}

// byHTTP are the errors that HTTP itself can cause at every path; the document has them as its default response.
var byHTTP = []int{http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestHeaderFieldsTooLarge}

// declared are the headers that must be declared.
var declared = []string{"x-auth", "p-auth", "ot-auth", "retry-after", "link", "x-total-count", "device-signature-nonce",
	"dpop-nonce"}

// Check returns an error for an answer that the document does not permit: an undeclared status, code, header or media
// type, or a body that violates its schema. Paths outside the document pass, and so does a challenge in front of an
// endpoint, which an installation may configure.
func (d *Document) Check(method, path string, status int, header http.Header, body []byte) error {
	path, _, _ = strings.Cut(path, "?")
	op, at := d.operation(method, path)
	if op == nil || guarding(op, status, header, body) {
		return nil
	}
	responses, _ := op["responses"].(map[string]any)
	byStatus, _ := op["x-codes"].(map[string]any)
	name := strconv.Itoa(status)
	codes, listed := byStatus[name].([]any)
	if responses[name] == nil {
		if !listed && !slices.Contains(byHTTP, status) {
			return fmt.Errorf("%s %s: the status %d is not declared: %s", method, path, status, body)
		}
		name = "default"
	}
	response, at := d.follow(responses[name], at+"/responses/"+name)
	headers, _ := response["headers"].(map[string]any)
	for _, h := range declared {
		if header.Get(h) != "" && headers[h] == nil {
			return fmt.Errorf("%s %s: %d: the header %s is not declared", method, path, status, h)
		}
	}
	if method == http.MethodHead || status == http.StatusNotModified {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	content, _ := response["content"].(map[string]any)
	if content[kind] == nil {
		return fmt.Errorf("%s %s: %d: the media type %q is not declared", method, path, status, kind)
	}
	if binary(content[kind]) { // bytes without a schema
		return nil
	}
	if err := d.Validate(at+"/content/"+Escape(kind)+"/schema", body); err != nil {
		return fmt.Errorf("%s %s: %d: %w: %s", method, path, status, err, body)
	}
	if listed && kind == "application/problem+json" {
		return knownCode(codes, body)
	}
	return nil
}

func binary(media any) bool {
	m, _ := media.(map[string]any)
	schema, _ := m["schema"].(map[string]any)
	return schema["format"] == "binary"
}

// operation returns the operation of a request, and its position in the document.
func (d *Document) operation(method, path string) (op map[string]any, at string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	paths, _ := d.root["paths"].(map[string]any)
	item, _ := paths[path].(map[string]any)
	op, _ = item[strings.ToLower(method)].(map[string]any)
	return op, "/paths/" + Escape(path) + "/" + strings.ToLower(method)
}

// follow resolves a response that refers to one of the components.
func (d *Document) follow(response any, at string) (map[string]any, string) {
	r, _ := response.(map[string]any)
	ref, _ := r["$ref"].(string)
	name, ok := strings.CutPrefix(ref, "#/components/responses/")
	if !ok {
		return r, at
	}
	components, _ := d.root["components"].(map[string]any)
	all, _ := components["responses"].(map[string]any)
	r, _ = all[name].(map[string]any)
	return r, "/components/responses/" + name
}

// Validate checks JSON against the schema at a pointer, such as /components/schemas/Problem.
func (d *Document) Validate(pointer string, body []byte) error {
	d.mu.Lock()
	schema := d.schemas[pointer]
	if schema == nil {
		var err error
		if schema, err = d.compiler.Compile(resource + "#" + pointer); err != nil {
			d.mu.Unlock()
			return err
		}
		d.schemas[pointer] = schema
	}
	d.mu.Unlock()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// knownCode refuses a problem whose code its operation does not list for its status.
func knownCode(codes []any, body []byte) error {
	var p struct{ Code string }
	if err := json.Unmarshal(body, &p); err != nil || !slices.Contains(codes, any(p.Code)) {
		return fmt.Errorf("the code %s is not one of %v", p.Code, codes)
	}
	return nil
}

// guarding reports whether the answer is the challenge that the configuration put in front of an endpoint
// (mfa.guarded), or the refusal to start it.
func guarding(op map[string]any, status int, header http.Header, body []byte) bool {
	if op["x-starts-action"] != nil {
		return false
	}
	challenge := status == http.StatusOK && header.Get("p-auth") != "" && bytes.HasPrefix(body, []byte(`{"challenge":`))
	var p struct{ Code string }
	return challenge && op["operationId"] != "login" ||
		status == http.StatusConflict && json.Unmarshal(body, &p) == nil && p.Code == "MFA_NOT_AVAILABLE" &&
			op["operationId"] != "login"
}

// Escape writes a part of a JSON pointer.
func Escape(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
}

// Test sends a request to an application and checks its answer. The error describes the violation of the document.
func Test(app interface {
	Test(r *http.Request, msTimeout ...int) (*http.Response, error)
}, r *http.Request) (*http.Response, error) {
	res, err := app.Test(r, -1)
	if err != nil {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = res.Body.Close()
	}
	if err != nil {
		return res, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, Published().Check(r.Method, r.URL.Path, res.StatusCode, res.Header, body)
}
