package office

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// described is a schema of the published document, with the fields that this test reads.
type described struct {
	Ref                  string               `json:"$ref"`
	Type                 any                  `json:"type"`
	Enum, Examples       []any                //
	OneOf                []described          `json:"oneOf"`
	Properties           map[string]described `json:"properties"`
	Required             []string             `json:"required"`
	Minimum, Maximum     *int64               //
	MinLength, MaxLength *int                 //
	Pattern              string               `json:"pattern"`
	Deprecated           bool                 `json:"deprecated"` // another spelling
}

// of returns the schema itself or the one it refers to.
func (s described) of(all map[string]described) described {
	if s.Ref != "" {
		return all[filepath.Base(s.Ref)].of(all)
	}
	return s
}

// value returns a value that the schema allows.
func (s described) value(all map[string]described) any {
	if len(s.Examples) > 0 { // of a field that refers to a schema
		return s.Examples[0]
	}
	s = s.of(all)
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return s.OneOf[0].value(all)
	case s.Type == "object":
		made := map[string]any{}
		for name, p := range s.Properties {
			made[name] = p.value(all)
		}
		return made
	case s.Type == "array":
		return []any{}
	case s.Type == "boolean":
		return true
	case s.Type == "integer":
		return 1
	}
	return "x"
}

// beyond returns values that the schema forbids, each just outside a bound.
func (s described) beyond() (out []any) {
	if s.Minimum != nil {
		out = append(out, *s.Minimum-1)
	}
	if s.Maximum != nil {
		out = append(out, *s.Maximum+1)
	}
	if s.MaxLength != nil {
		out = append(out, strings.Repeat("x", *s.MaxLength+1))
	}
	if s.MinLength != nil {
		out = append(out, strings.Repeat("x", *s.MinLength-1))
	}
	if s.Pattern != "" {
		out = append(out, " ", "!")
	}
	if len(s.Enum) > 0 {
		out = append(out, "of no list")
	}
	if s.Pattern == `\S` { // "!" is not blank
		out = slices.DeleteFunc(out, func(v any) bool { return v == "!" })
	}
	return out
}

// noRecord is the id of a record that does not exist.
const noRecord = "01JD3X4Q7V0S8D4T2M6B9N1ZKA"

// TestDocumentBoundsAreEnforced checks that the service refuses values that the document forbids, and names the
// field. The bounds of a field are those that the domain checks.
func TestDocumentBoundsAreEnforced(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "openapi.json"))
	storetest.Must(t, err)
	var doc struct {
		Components struct{ Schemas map[string]described }
		Paths      map[string]map[string]struct {
			Security    []map[string]any
			RequestBody struct {
				Content map[string]struct{ Schema described }
			} `json:"requestBody"`
		}
	}
	storetest.Must(t, json.Unmarshal(text, &doc))
	s := blackbox.NewSite(t, "sqlite").Set("LIMITS_ENABLED=false")
	n := s.Start()
	token, _ := n.Session(t, s.Seeded("admin"))
	all, tried := doc.Components.Schemas, 0
	admin := blackbox.Headers{"x-auth": token}
	n.Ok(t, "POST", blackbox.RulesPath, map[string]any{"label": "login-ip", "type": "rate_limit", "limit": 10,
		"period":   60_000,
		"expireAt": 0, "targetEntityType": "IP", "targetResources": []string{"POST /auth/login"}}, admin)
	var added struct{ Data struct{ ID string } }
	n.Ok(t, "POST", blackbox.AddressesPath, map[string]any{"currencyCode": "USDT", "networkCode": "TRX",
		"name":    "Cold wallet",
		"address": "TAzaZg1EuULzZTuJtJdrBdbSjCp5AbZEVP"}, admin).Read(t, &added)
	existing := map[string]any{blackbox.AddressesPath: added.Data.ID} // the id that a change of a record needs
	for path, item := range doc.Paths {
		for method, op := range item {
			if len(op.Security) > 0 && (len(op.Security[0]) > 1 || op.Security[0]["x-auth"] == nil) {
				continue // needs a challenge, or a device's signature
			}
			body := op.RequestBody.Content["application/json"].Schema.of(all)
			for field, p := range body.Properties {
				if p.Deprecated {
					continue
				}
				for _, bad := range p.of(all).beyond() {
					tried++
					sent := map[string]any{}
					for name, x := range body.Properties {
						tag := name == "addressTag" // the network of the record has none
						if slices.Contains(body.Required, name) || method == "patch" && !x.Deprecated && !tag {
							sent[name] = x.value(all)
						}
					}
					if id := existing[path]; id != nil && sent["id"] != nil {
						sent["id"] = id
					}
					sent[field] = bad
					a := n.Do(t, strings.ToUpper(method), strings.ReplaceAll(path, "{id}", noRecord), sent, admin)
					named := strings.Contains(string(a.Body), `{"field":"`+field+`"`) ||
						strings.Contains(string(a.Body), `"message":"`+field+`: `) // has a refusal of its own
					if a.Status != 400 || !named {
						t.Errorf("%s %s takes %s %.40v: %s", method, path, field, bad, a)
					}
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("%d values were tried", tried)
	}
}
