package rest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// schemas turns Go types into JSON Schema. A request follows the binder's rules
// (its plan), an answer those of encoding/json; the same type may therefore have
// one schema of each kind.
type schemas struct {
	named map[string]*huma.Schema
	names map[schemaKey]string
}

type schemaKey struct {
	t     reflect.Type
	input bool
}

const schemaPrefix = "#/components/schemas/"

func newSchemas(into map[string]*huma.Schema) *schemas {
	return &schemas{named: into, names: map[schemaKey]string{}}
}

// ref registers a named struct under "<package>.<Type>" and returns a reference
// to it; build runs once. A type without a name of its own is described in place.
func (s *schemas) ref(t reflect.Type, input bool, build func() *huma.Schema) *huma.Schema {
	if t.Name() == "" || strings.ContainsAny(t.Name(), "[]") {
		return build()
	}
	key := schemaKey{t, input}
	name, ok := s.names[key]
	if !ok {
		name = path.Base(t.PkgPath()) + "." + strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
		if input && !strings.HasSuffix(name, "Request") {
			name += "Input"
		}
		base := name
		for n := 2; s.named[name] != nil; n++ {
			name = base + strconv.Itoa(n)
		}
		s.names[key] = name
		s.named[name] = &huma.Schema{} // a placeholder, so that a type may hold itself
		*s.named[name] = *build()
	}
	return &huma.Schema{Ref: schemaPrefix + name}
}

// input describes what the binder accepts for a type.
func (s *schemas) input(t reflect.Type) *huma.Schema {
	switch t {
	case typeID:
		return &huma.Schema{Description: "A whole number or its digits.", OneOf: []*huma.Schema{
			{Type: "integer", Format: "int64", Minimum: float(0)}, {Type: "string", Pattern: "^[0-9]{1,16}$"}}}
	case typeDecimal:
		return &huma.Schema{Description: "An exact decimal, as a number or as text.", OneOf: []*huma.Schema{
			{Type: "number"}, {Type: "string"}}}
	case typeTime:
		return &huma.Schema{Description: "Epoch milliseconds, a date (YYYY-MM-DD) or an ISO 8601 time, UTC without a zone.",
			OneOf: []*huma.Schema{{Type: "integer", Format: "int64"}, {Type: "string"}}}
	case typeJSON:
		return &huma.Schema{Description: "An object or array, or a string that holds its JSON text.", OneOf: []*huma.Schema{
			{Type: "object"}, {Type: "array", Items: &huma.Schema{}}, {Type: "string"}}}
	case typeRaw, typeAny:
		return &huma.Schema{}
	case typeStrings:
		return &huma.Schema{OneOf: []*huma.Schema{{Type: "string"}, {Type: "array", Items: &huma.Schema{Type: "string"}}}}
	}
	if isNullable(t) {
		value, _ := t.FieldByName("Value")
		return orNull(s.input(value.Type))
	}
	switch p := reflect.PointerTo(t); {
	case t.Kind() == reflect.Pointer:
		return s.input(t.Elem())
	case p.Implements(jsonUnmarshaler):
		return &huma.Schema{}
	case p.Implements(textUnmarshaler):
		return &huma.Schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Slice:
		return &huma.Schema{Type: "array", Items: s.input(t.Elem())}
	case reflect.Map:
		return &huma.Schema{Type: "object", AdditionalProperties: s.input(t.Elem())}
	case reflect.Struct:
		return s.ref(t, true, func() *huma.Schema { return s.object(t) })
	}
	return scalarSchema(t)
}

// object describes a request's struct by its plan.
func (s *schemas) object(t reflect.Type) *huma.Schema {
	p, err := planOf(t)
	if err != nil { // the plan that holds this type was compiled, so this one can be
		panic(err)
	}
	o := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{}}
	for i := range p.fields {
		f := &p.fields[i]
		o.Properties[f.name] = s.fieldSchema(f)
		if f.alias != "" {
			o.Properties[f.alias] = &huma.Schema{Description: "Another spelling of " + f.name + ", accepted in its place."}
		}
		if f.required { // of two spellings the one that the interface requires
			o.Required = append(o.Required, f.name)
		}
	}
	return o
}

// fieldSchema is a field's type with the checks of its tags.
func (s *schemas) fieldSchema(f *field) *huma.Schema {
	base := s.input(f.typ)
	if base.Ref != "" {
		if doc := f.tag.Get("doc"); doc != "" {
			return &huma.Schema{Description: doc, AllOf: []*huma.Schema{base}}
		}
		return base
	}
	if doc := f.tag.Get("doc"); doc != "" {
		base.Description = doc
	}
	if f.alias != "" {
		base.Description += "; also accepted as " + f.alias
	}
	if e := f.tag.Get("example"); e != "" {
		base.Examples = []any{sample(base, e)}
	}
	if d, ok := f.tag.Lookup("default"); ok {
		base.Default = sample(base, d)
	}
	of := base
	if base.Type == "array" {
		of = base.Items
	}
	if e := f.tag.Get("enum"); e != "" {
		for v := range strings.SplitSeq(e, ",") {
			of.Enum = append(of.Enum, v)
		}
		if of.Nullable {
			of.Enum = append(of.Enum, nil)
		}
	}
	for tag, to := range map[string]**float64{"minimum": &base.Minimum, "maximum": &base.Maximum} {
		if n, err := strconv.ParseFloat(f.tag.Get(tag), 64); err == nil {
			*to = &n
		}
	}
	for tag, to := range map[string]**int{"maxLength": &of.MaxLength, "maxItems": &base.MaxItems} {
		if n, err := strconv.Atoi(f.tag.Get(tag)); err == nil {
			*to = &n
		}
	}
	if f.required && !f.blank && f.typ.Kind() == reflect.String && f.typ != typeDecimal && base.Type == "string" && len(base.Enum) == 0 {
		base.Pattern = `\S`
	}
	return base
}

// sample is the value of a tag: what is text stays text, even where it is all
// digits; anything else is JSON where it reads as such.
func sample(of *huma.Schema, text string) any {
	var v any
	if of.Type != "string" && json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	typeGoTime    = reflect.TypeFor[time.Time]()
	typeNumber    = reflect.TypeFor[json.Number]()
)

// output describes what encoding/json writes for a type.
func (s *schemas) output(t reflect.Type) *huma.Schema {
	switch t {
	case typeDecimal, typeNumber:
		return &huma.Schema{Type: "number"}
	case typeTime, typeGoTime:
		return &huma.Schema{Type: "string", Format: "date-time"}
	case typeJSON, typeRaw, typeAny:
		return &huma.Schema{}
	}
	if isNullable(t) {
		value, _ := t.FieldByName("Value")
		return orNull(s.output(value.Type))
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return orNull(s.output(t.Elem()))
	case t.Implements(jsonMarshaler):
		return &huma.Schema{}
	case t.Implements(textMarshaler):
		return &huma.Schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &huma.Schema{Type: "string", ContentEncoding: "base64"}
		}
		return &huma.Schema{Type: "array", Items: s.output(t.Elem())}
	case reflect.Map:
		return &huma.Schema{Type: "object", AdditionalProperties: s.output(t.Elem())}
	case reflect.Struct:
		return s.ref(t, false, func() *huma.Schema {
			o := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{}}
			s.members(o, t)
			return o
		})
	}
	return scalarSchema(t)
}

func (s *schemas) members(o *huma.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && opts == "":
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.members(o, f.Type)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		options := strings.Split(opts, ",")
		optional := slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem() // left out rather than null
		}
		p := s.output(ft)
		if slices.Contains(options, "string") {
			p = &huma.Schema{Type: "string"}
		}
		if kind := f.Tag.Get("type"); kind != "" { // of what writes itself
			p = &huma.Schema{Type: kind}
		}
		if doc := f.Tag.Get("doc"); doc != "" && p.Ref == "" {
			p.Description = doc
		}
		if e := f.Tag.Get("enum"); e != "" && p.Type == "string" {
			for v := range strings.SplitSeq(e, ",") {
				p.Enum = append(p.Enum, v)
			}
		}
		o.Properties[name] = p
		if !optional {
			o.Required = append(o.Required, name)
		}
	}
}

// orNull also admits null.
func orNull(x *huma.Schema) *huma.Schema {
	switch {
	case x.Type != "":
		x.Nullable = true
		return x
	case x.Ref != "" || len(x.OneOf) > 0:
		return &huma.Schema{AnyOf: []*huma.Schema{x, {Type: "null"}}}
	}
	return x
}

func scalarSchema(t reflect.Type) *huma.Schema {
	switch t.Kind() {
	case reflect.String:
		return &huma.Schema{Type: "string"}
	case reflect.Bool:
		return &huma.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return &huma.Schema{Type: "integer", Format: "int64"}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &huma.Schema{Type: "integer"}
	case reflect.Float32, reflect.Float64:
		return &huma.Schema{Type: "number"}
	}
	panic(fmt.Sprintf("rest: no schema for %v", t))
}

func float(x float64) *float64 { return &x }
