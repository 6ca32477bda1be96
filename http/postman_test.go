package httpapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/internal/postman"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestGoldenPostman keeps the collection for Postman as it follows from the document.
func TestGoldenPostman(t *testing.T) {
	const file = sectionsFolder + "/postman.json"
	document, err := httpapi.OpenAPI("1", "")
	storetest.Must(t, err)
	got, err := postman.Collection(document)
	storetest.Must(t, err)
	if *update {
		storetest.Must(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the document says (make golden writes it): %v", file, err)
	}

	schema, err := jsonschema.NewCompiler().Compile("../internal/postman/testdata/schema.json")
	storetest.Must(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
	storetest.Must(t, err)
	if err := schema.Validate(value); err != nil {
		t.Errorf("not a collection: %v", err)
	}
}

// Every endpoint is one request of the collection, with its credential and a body that
// is JSON.
func TestPostmanHasEveryEndpoint(t *testing.T) {
	document, err := httpapi.OpenAPI("1", "")
	storetest.Must(t, err)
	text, err := postman.Collection(document)
	storetest.Must(t, err)
	var c struct {
		Item []struct {
			Item []struct {
				Request struct {
					Method string
					Header []struct{ Key, Value string }
					URL    struct{ Path []string }
					Body   *struct{ Raw string }
				}
			}
		}
	}
	storetest.Must(t, json.Unmarshal(text, &c))
	has := map[string]int{}
	for _, folder := range c.Item {
		for _, i := range folder.Item {
			r := i.Request
			key := r.Method + " /" + strings.Join(r.URL.Path, "/")
			has[key]++
			if r.Body != nil && !json.Valid([]byte(r.Body.Raw)) {
				t.Errorf("%s sends %s", key, r.Body.Raw)
			}
			if strings.Contains(key, " /admin/") && (len(r.Header) == 0 || r.Header[0].Value != "{{xAuth}}") {
				t.Errorf("%s sends %v", key, r.Header)
			}
		}
	}
	all := httpapi.Endpoints()
	for _, e := range all {
		if key := strings.NewReplacer("{", ":", "}", "").Replace(e.Key()); has[key] != 1 {
			t.Errorf("%s is there %d times", key, has[key])
		}
	}
	if len(has) != len(all) {
		t.Errorf("%d requests of %d endpoints", len(has), len(all))
	}
}
