package rest

import (
	"cmp"
	_ "embed"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
)

// schemas turns Go types into JSON Schema. A request follows the binder's rules (its plan), an answer those of
// encoding/json; the same type may therefore have one schema of each kind. Details that Go types cannot express come
// from tables of named schemas: the kit's in schemas.json of this package, a section's in its folder.
type schemas struct {
	named  map[string]*huma.Schema
	names  map[schemaKey]string
	tables map[string]map[string]any
	fault  error // the first undefined or duplicate name
}

type schemaKey struct {
	t     reflect.Type
	input bool
}

const schemaPrefix = "#/components/schemas/"

//go:embed schemas.json
var kitSchemas []byte

func newSchemas(into map[string]*huma.Schema, tables [][]byte) (*schemas, error) {
	s := &schemas{named: into, names: map[schemaKey]string{}, tables: map[string]map[string]any{}}
	for _, table := range tables {
		var defined map[string]map[string]any
		if err := json.Unmarshal(table, &defined); err != nil {
			return nil, fmt.Errorf("table of schemas: %w", err)
		}
		for name, schema := range defined {
			if s.tables[name] != nil {
				return nil, fmt.Errorf("two tables define the schema %s", name)
			}
			s.tables[name] = schema
		}
	}
	return s, nil
}

// complete returns an error for a schema that nothing defines.
func (s *schemas) complete() error { return s.fault }

// use refers to a schema of the tables, which brings those that it refers to.
func (s *schemas) use(name string) *huma.Schema {
	if s.named[name] == nil {
		schema := s.tables[name]
		if schema == nil && s.fault == nil {
			s.fault = fmt.Errorf("nothing defines the schema %q", name)
		}
		s.named[name] = &huma.Schema{Extensions: schema}
		s.uses(schema)
	}
	return &huma.Schema{Ref: schemaPrefix + name}
}

func (s *schemas) uses(part any) {
	switch part := part.(type) {
	case []any:
		for _, x := range part {
			s.uses(x)
		}
	case map[string]any:
		for key, x := range part {
			if ref, ok := x.(string); ok && key == "$ref" {
				s.use(strings.TrimPrefix(ref, schemaPrefix))
			}
			s.uses(x)
		}
	}
}

// define gives a schema a name and returns a reference to it.
func (s *schemas) define(name string, schema *huma.Schema) *huma.Schema {
	if s.named[name] != nil && s.fault == nil {
		s.fault = fmt.Errorf("two schemas are named %q", name)
	}
	s.named[name] = schema
	return &huma.Schema{Ref: schemaPrefix + name}
}

// ref registers a named struct and returns a reference to it; build runs once. A
// type without a name of its own is described in place.
func (s *schemas) ref(t reflect.Type, input bool, build func() *huma.Schema) *huma.Schema {
	if t.Name() == "" || strings.ContainsAny(t.Name(), "[]") {
		return build()
	}
	key := schemaKey{t, input}
	name, ok := s.names[key]
	if !ok {
		if name = schemaName(t); input {
			name += "Input"
		}
		s.names[key] = name
		placeholder := &huma.Schema{} // so that a type may contain itself
		s.define(name, placeholder)
		*placeholder = *build()
	}
	return &huma.Schema{Ref: schemaPrefix + name}
}

// schemaName is the name of a type in the document; define refuses a duplicate. A type of several words has its own
// name: roleMember is RoleMember. A single word follows the name of its package: mfa.policy is MfaPolicy. A record has
// the name of its package: session.record is Session. Types of package wire have their own names. The method SchemaName
// of a type comes before these rules.
func schemaName(t reflect.Type) string {
	if n, ok := reflect.Zero(t).Interface().(interface{ SchemaName() string }); ok {
		return n.SchemaName()
	}
	slice, name := capital(path.Base(t.PkgPath())), capital(t.Name())
	switch {
	case name == "Record":
		return slice
	case slice == "Wire" || strings.HasPrefix(name, slice) || strings.ContainsFunc(name[1:], unicode.IsUpper):
		return name
	}
	return slice + name
}

// input describes what the binder accepts for a type.
func (s *schemas) input(t reflect.Type) *huma.Schema {
	switch t {
	case typeID:
		return s.use("Id")
	case typeDecimal, typeAmount, typeSum:
		return s.use("Amount")
	case typeTime:
		return s.use("Instant")
	case typeJSON:
		return s.use("JsonValue")
	case typeRaw, typeAny:
		return s.use("AnyJson")
	case typeStrings:
		return &huma.Schema{OneOf: []*huma.Schema{
			{Type: "string"}, {Type: "array", Items: &huma.Schema{Type: "string"}}}}
	case typeBase64:
		return &huma.Schema{Type: "string", ContentEncoding: "base64", MinLength: new(2)}
	}
	if isNullable(t) {
		value, _ := t.FieldByName("Value")
		return orNull(s.input(value.Type))
	}
	switch p := reflect.PointerTo(t); {
	case t.Kind() == reflect.Pointer:
		return s.input(t.Elem())
	case p.Implements(jsonUnmarshaler):
		return s.use("AnyJson")
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
		field := s.fieldSchema(f)
		o.Properties[f.name] = field
		if f.alias != "" {
			alias := *field
			o.Properties[f.alias] = aliasOf(f.name, &alias)
		}
		if f.required { // of two spellings the one that the interface requires
			o.Required = append(o.Required, f.name)
		}
	}
	if p.strict {
		o.AdditionalProperties = false
	}
	return o
}

// aliasOf marks a field as another spelling. Generators that make identifiers of
// names would otherwise make one of both.
func aliasOf(name string, alias *huma.Schema) *huma.Schema {
	alias.Deprecated = true
	alias.Description = "Alias of " + name + "."
	alias.Extensions = map[string]any{"x-go-name": capital(name) + "Alias"}
	return alias
}

// fieldSchema is the schema of a field's type with the checks of its tags.
func (s *schemas) fieldSchema(f *field) *huma.Schema {
	base := s.typed(f.tag, func() *huma.Schema { return s.input(f.typ) })
	if d, ok := f.tag.Lookup("default"); ok {
		base.Default = sample(base, d)
	}
	describe(base, f.typ, f.tag, f.name)
	if f.alias != "" {
		base.Description = strings.TrimPrefix(base.Description+"; also accepted as "+f.alias, "; ")
	}
	if f.required && !f.blank && f.typ.Kind() == reflect.String && base.Type == "string" &&
		len(base.Enum) == 0 && base.Pattern == "" {
		base.Pattern = `\S`
	}
	return base
}

// typed is the schema that a field names with the tag schema, else that of its type.
func (s *schemas) typed(tag reflect.StructTag, of func() *huma.Schema) *huma.Schema {
	if name := tag.Get("schema"); name != "" {
		return s.use(name)
	}
	return of()
}

// describe applies the tags of a field. A bound that the binder checks is written like
// minimum:"1". A bound that the domain checks, with its own text or code, is written like
// doc.minimum:"1" and is only documented.
func describe(base *huma.Schema, typ reflect.Type, tag reflect.StructTag, name string) {
	said := func(name string) string { return cmp.Or(tag.Get(name), tag.Get("doc."+name)) }
	base.Description = cmp.Or(tag.Get("doc"), base.Description)
	of := base
	if base.Type == "array" {
		of = base.Items
	}
	if e := cmp.Or(said("enum"), enumOf(typ)); e != "" && of.Type == "string" {
		for v := range strings.SplitSeq(e, ",") {
			of.Enum = append(of.Enum, v)
		}
		if of.Nullable {
			of.Enum = append(of.Enum, nil)
		}
	}
	for name, to := range map[string]**float64{"minimum": &base.Minimum, "maximum": &base.Maximum} {
		if n, err := strconv.ParseFloat(said(name), 64); err == nil {
			*to = &n
		}
	}
	for name, to := range map[string]**int{
		"minLength": &of.MinLength, "maxLength": &of.MaxLength, "maxItems": &base.MaxItems,
	} {
		if n, err := strconv.Atoi(said(name)); err == nil {
			*to = &n
		}
	}
	of.Pattern = cmp.Or(said("pattern"), of.Pattern)
	if e := tag.Get("example"); e != "" {
		base.Examples = []any{sample(base, e)}
	} else if len(of.Enum) == 0 && base.Default == nil {
		base.Examples = exampleOf(base, name)
	}
}

// sample is the value of a tag. A text stays a text, even one of digits alone;
// another value is read as JSON where it is JSON.
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
	case typeDecimal, typeAmount, typeSum, typeNumber:
		return &huma.Schema{Type: "number"}
	case typeTime, typeGoTime:
		return &huma.Schema{Type: "string", Format: "date-time"}
	case typeJSON, typeRaw, typeAny:
		return s.use("AnyJson")
	}
	if union, ok := reflect.Zero(t).Interface().(interface{ shapes() []reflect.Type }); ok {
		return &huma.Schema{OneOf: Each(union.shapes(), s.output)}
	}
	switch {
	case t.Kind() == reflect.Pointer:
		return orNull(s.output(t.Elem()))
	case t.Implements(jsonMarshaler):
		return s.use("AnyJson")
	case t.Implements(textMarshaler):
		return &huma.Schema{Type: "string"}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
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
		}
		options := strings.Split(opts, ",")
		optional := slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem() // left out rather than null
		}
		p := s.typed(f.Tag, func() *huma.Schema { return s.output(ft) })
		if ft.Kind() == reflect.Pointer && p.Ref != "" { // the tag names the schema of the value
			p = orNull(p)
		}
		describe(p, f.Type, f.Tag, name)
		if main := f.Tag.Get("alias"); main != "" {
			aliasOf(main, p)
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
	case x.Ref == schemaPrefix+"AnyJson": // null is JSON too
		return x
	}
	return &huma.Schema{AnyOf: []*huma.Schema{x, {Type: "null"}}}
}

func scalarSchema(t reflect.Type) *huma.Schema {
	switch t.Kind() {
	case reflect.String:
		return &huma.Schema{Type: "string"}
	case reflect.Bool:
		return &huma.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &huma.Schema{Type: "integer", Format: "int64"}
	case reflect.Float64:
		return &huma.Schema{Type: "number"}
	}
	panic(fmt.Sprintf("rest: no schema for %v", t))
}
