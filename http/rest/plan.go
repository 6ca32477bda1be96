package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A plan is how one struct is read from a request. It is compiled once per type;
// binding then walks compiled closures and never looks at a tag.
//
// A field's wire name is its json tag, which it must have. It is required when it is a value,
// and optional when it is a pointer, a Nullable, has a default or says omitempty. Further
// tags; an invalid tag stops the start:
//
//	alias:"recovery_code"  second accepted name (D-GEN-18)
//	default:"5"            value of a field not sent, written as in a query
//	blank:"ok"             a required string may be blank
//	blank:"no"             an optional string, or an element of a slice, must not be blank
//	enum:"A,B"             allowed values, of the elements when it is a slice
//	minimum:"0" maximum:"9"  inclusive bounds of an integer
//	maxLength:"64"         characters of a string
//	maxItems:"100"         elements of a slice
//
// These are only for the OpenAPI document: doc, the description of the field; example;
// schema:"Name", a schema of schemas.json; and a bound that the domain checks, with its own
// words or code, such as doc.minimum:"1" or doc.pattern:"…".
type plan struct {
	typ    reflect.Type
	fields []field
	index  map[string]int // wire names and aliases
	strict bool           // Strict is embedded
}

// Strict is embedded in a struct of a request whose unknown fields are refused. It is for conditions: one that is
// misspelt, or that this version does not know, must not be left out.
type Strict struct{}

// find returns the index of a field by its name in a request. It tries guess first: most clients send the fields in the
// order of the API description.
func (p *plan) find(name []byte, guess int) (i int, known bool) {
	if guess < len(p.fields) && p.fields[guess].name == string(name) {
		return guess, true
	}
	i, known = p.index[string(name)]
	return i, known
}

type field struct {
	name, alias string
	index       []int
	typ         reflect.Type
	required    bool
	blank       bool // a required string may be blank
	slice       bool // a query may repeat it
	nullable    bool // null is a value of its own
	codec       codec
	deflt       *string // as in a query; nil when there is none
	tag         reflect.StructTag
}

// maxFields is the size of a bitset, far beyond any request of the interface.
const maxFields = 128

type bitset [maxFields / 64]uint64

func (s *bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *bitset) set(i int)      { s[i/64] |= 1 << (i % 64) }

var plans sync.Map // reflect.Type → *plan

// planOf compiles t, a struct. The error names the field that cannot be bound.
func planOf(t reflect.Type) (*plan, error) {
	if p, ok := plans.Load(t); ok {
		return p.(*plan), nil
	}
	c := compiler{done: map[reflect.Type]*plan{}}
	p, err := c.object(t)
	if err != nil {
		return nil, err
	}
	got, _ := plans.LoadOrStore(t, p)
	return got.(*plan), nil
}

// compiler holds the plans under construction, so that a type may contain itself.
type compiler struct{ done map[reflect.Type]*plan }

func (c compiler) object(t reflect.Type) (*plan, error) {
	if p, ok := c.done[t]; ok {
		return p, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct", t)
	}
	p := &plan{typ: t, index: map[string]int{}}
	c.done[t] = p
	if err := c.fields(p, t, nil); err != nil {
		return nil, err
	}
	if len(p.fields) > maxFields {
		return nil, fmt.Errorf("%v has more than %d fields", t, maxFields)
	}
	for i, f := range p.fields {
		for _, name := range []string{f.name, f.alias} {
			if name == "" {
				continue
			}
			if _, twice := p.index[name]; twice {
				return nil, fmt.Errorf("%v: two fields named %q", t, name)
			}
			p.index[name] = i
		}
	}
	return p, nil
}

func (c compiler) fields(p *plan, t reflect.Type, at []int) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(at[:len(at):len(at)], i)
		tag, tagged := sf.Tag.Lookup("json")
		if sf.Type == typeStrict {
			p.strict = true
			continue
		}
		if sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct {
			if err := c.fields(p, sf.Type, index); err != nil {
				return err
			}
			continue
		}
		if !sf.IsExported() || tag == "-" {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if name == "" {
			return fmt.Errorf("%v.%s has no json name", t, sf.Name)
		}
		f, err := c.field(sf, name, opts)
		if err != nil {
			return fmt.Errorf("%v.%s: %w", t, sf.Name, err)
		}
		f.index = index
		p.fields = append(p.fields, f)
	}
	return nil
}

func (c compiler) field(sf reflect.StructField, name, opts string) (field, error) {
	f := field{name: name, alias: sf.Tag.Get("alias"), typ: sf.Type, tag: sf.Tag,
		blank: sf.Tag.Get("blank") == "ok", nullable: isNullable(sf.Type)}
	base := sf.Type
	if base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	f.slice = isList(base)
	text, hasDefault := sf.Tag.Lookup("default")
	f.required = sf.Type.Kind() != reflect.Pointer && !f.nullable && !hasDefault &&
		!strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero")
	var err error
	if f.codec, err = c.codec(sf.Type); err != nil {
		return f, err
	}
	if f.codec, err = restrict(f.codec, base, sf.Tag); err != nil {
		return f, err
	}
	if hasDefault {
		f.deflt = &text
		var b binder
		if f.codec.text(&b, reflect.New(sf.Type).Elem(), text); len(b.problems) > 0 {
			return f, fmt.Errorf("default %q %s", text, b.problems[0].Message)
		}
	}
	return f, nil
}

// restrict adds the checks of the tags to a codec of base or of a pointer to it.
func restrict(k codec, base reflect.Type, tag reflect.StructTag) (codec, error) {
	var checks []func(*binder, reflect.Value) bool
	nullable := isNullable(base)
	if nullable {
		value, _ := base.FieldByName("Value")
		base = value.Type
	}
	elem := base
	if isList(base) {
		elem = base.Elem()
	}
	if s, ok := tag.Lookup("enum"); ok {
		if elem.Kind() != reflect.String {
			return k, fmt.Errorf("enum on %v", base)
		}
		allowed, message := strings.Split(s, ","), "must be one of "+strings.ReplaceAll(s, ",", ", ")
		checks = append(checks, func(b *binder, v reflect.Value) bool {
			return eachString(v, func(s string) bool { return slices.Contains(allowed, s) }) || b.fail(message)
		})
	}
	if tag.Get("blank") == "no" {
		if !isText(base) {
			return k, fmt.Errorf("blank on %v", base)
		}
		checks = append(checks, func(b *binder, v reflect.Value) bool {
			return eachString(v, func(s string) bool { return strings.TrimSpace(s) != "" }) || b.fail("must not be blank")
		})
	}
	for _, bound := range []struct {
		tag, message string
		kinds        func(reflect.Type) bool
		ok           func(v reflect.Value, n int64) bool
	}{
		{"minimum", "must be at least %d", isInt, func(v reflect.Value, n int64) bool { return v.Int() >= n }},
		{"maximum", "must be at most %d", isInt, func(v reflect.Value, n int64) bool { return v.Int() <= n }},
		{"maxItems", "has too many elements, at most %d", isList,
			func(v reflect.Value, n int64) bool { return int64(v.Len()) <= n }},
		{"maxLength", "is longer than %d characters", isText, func(v reflect.Value, n int64) bool {
			return eachString(v, func(s string) bool { return int64(len(s)) <= n || int64(len([]rune(s))) <= n })
		}},
	} {
		s, ok := tag.Lookup(bound.tag)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || !bound.kinds(base) {
			return k, fmt.Errorf("%s:%q on %v", bound.tag, s, base)
		}
		message := fmt.Sprintf(bound.message, n)
		checks = append(checks, func(b *binder, v reflect.Value) bool { return bound.ok(v, n) || b.fail(message) })
	}
	if len(checks) == 0 {
		return k, nil
	}
	check := func(b *binder, v reflect.Value) {
		switch {
		case v.Kind() == reflect.Pointer:
			v = v.Elem()
		case nullable && v.FieldByName("Null").Bool():
			return
		case nullable:
			v = v.FieldByName("Value")
		}
		for _, c := range checks {
			if !c(b, v) {
				return
			}
		}
	}
	return codec{
		json: func(b *binder, v reflect.Value) {
			before := len(b.problems)
			if k.json(b, v); len(b.problems) == before {
				check(b, v)
			}
		},
		text: func(b *binder, v reflect.Value, s string) {
			before := len(b.problems)
			if k.text(b, v, s); len(b.problems) == before {
				check(b, v)
			}
		},
	}, nil
}

// eachString applies ok to a string or to every element of a slice of strings.
func eachString(v reflect.Value, ok func(string) bool) bool {
	if v.Kind() == reflect.String {
		return ok(v.String())
	}
	for i := range v.Len() {
		if !ok(v.Index(i).String()) {
			return false
		}
	}
	return true
}

func isInt(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 }

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8
}

func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || isList(t) && t.Elem().Kind() == reflect.String
}
