package rest

import (
	"cmp"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"castellan/domain/kit/fault"

	"github.com/danielgtaylor/huma/v2"
)

// Example is the example request of an endpoint. A test sends it to a running service and writes the request and its
// response to a Sample, which the document shows.
type Example struct {
	// Request is the JSON body; for a GET, the query without its question mark. ${addRole.data.id}
	// is replaced by a value of an earlier answer, by operation id and path in its JSON.
	Request string
	Refused fault.Code // expected code; "": 200
	// Last marks an example that removes data which other examples of its section need; it runs
	// after them. A DELETE always does.
	Last bool
}

// Try sets the example request, if the request derived from the fields would not get 200. An
// example that is refused names its code.
func (e Endpoint) Try(request string, refused ...fault.Code) Endpoint {
	e.example = &Example{Request: request}
	if len(refused) > 0 {
		e.example.Refused = refused[0]
	}
	return e
}

// TryLast is Try for an endpoint that removes data which other examples of its section need; request may be "".
func (e Endpoint) TryLast(request string) Endpoint {
	e.example = &Example{Request: request, Last: true}
	return e
}

// Example is the request of Try, otherwise the required fields with their examples.
func (e *Endpoint) Example() (x Example) {
	if e.example != nil {
		x = *e.example
	}
	x.Last = x.Last || e.Method == "DELETE"
	if x.Request == "" {
		x.Request = e.required()
	}
	return x
}

// required is a request with the required fields.
func (e *Endpoint) required() string {
	query, body := url.Values{}, []string{}
	for _, f := range e.Fields() {
		if !f.Required {
			continue
		}
		value, err := json.Marshal(f.sample())
		if err != nil {
			continue
		}
		query.Set(f.Name, strings.Trim(string(value), `"`))
		name, _ := json.Marshal(f.Name)
		body = append(body, string(name)+":"+string(value))
	}
	switch {
	case e.Method == "GET":
		return query.Encode()
	case len(body) == 0:
		return ""
	}
	return "{" + strings.Join(body, ",") + "}"
}

// Field is a field of a request.
type Field struct {
	Name, Alias string
	Type        reflect.Type // of its value: no pointer, no Nullable
	Required    bool
	Nullable    bool // null clears it
	Blank       bool // required, and may be blank
	InPath      bool
	Tag         reflect.StructTag
}

// Fields are those of the request, in the order of its struct.
func (e *Endpoint) Fields() []Field {
	inPath := PathParams(e.Path)
	fields := e.plan.shown()
	for i, f := range fields {
		fields[i].InPath = slices.Contains(inPath, f.Name)
	}
	return fields
}

// Inner are the fields of the object that the field holds, or of each object of its
// list; none where it holds no object of fixed fields.
func (f Field) Inner() []Field {
	t := f.Type
	if isList(t) {
		t = t.Elem()
	}
	c := compiler{done: map[reflect.Type]*plan{}}
	if _, err := c.codec(t); err != nil || c.done[t] == nil {
		return nil
	}
	return c.done[t].shown()
}

func (p *plan) shown() []Field {
	fields := make([]Field, len(p.fields))
	for i, f := range p.fields {
		t := f.typ
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if f.nullable {
			value, _ := t.FieldByName("Value")
			t = value.Type
		}
		fields[i] = Field{Name: f.name, Alias: f.alias, Type: t, Required: f.required, Nullable: f.nullable,
			Blank: f.blank, Tag: f.tag}
	}
	return fields
}

// sample is the field's example in the document.
func (f Field) sample() any {
	if enum, _, _ := strings.Cut(cmp.Or(f.Tag.Get("enum"), f.Tag.Get("doc.enum"), enumOf(f.Type)), ","); enum != "" {
		return enum
	}
	s := &huma.Schema{Type: "string"}
	switch f.Type.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.Type = "integer"
	case reflect.Bool:
		return true
	case reflect.Slice, reflect.Map, reflect.Struct:
		s.Type = "object"
	}
	if text, ok := f.Tag.Lookup("example"); ok {
		return sample(s, text)
	}
	if all := exampleOf(s, f.Name); len(all) > 0 {
		return all[0]
	}
	return f.Name
}

// enumOf lists the values of a type that has the method Enum, such as the kinds of a second factor. They are only
// documented: the domain checks them.
func enumOf(typ reflect.Type) string {
	e, ok := reflect.Zero(typ).Interface().(interface{ Enum() []string })
	if !ok {
		return ""
	}
	return strings.Join(e.Enum(), ",")
}
