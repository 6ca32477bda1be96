package rest

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"castellan/domain/kit/fault"
)

// Query is the part of a request outside its body: the query string as sent and
// the values of the path's parameters.
type Query struct {
	Raw    string            `json:"raw,omitempty"`
	Params map[string]string `json:"params,omitempty"`
}

// Extras are parameters that any request may carry beside the fields of its
// endpoint.
type Extras struct {
	Language string // _requesterLanguage (D-GEN-16)
	OTP      string // the body's otp (D-AUTH-08)
}

// binder is one reading of one request. Problems are collected, not returned, so
// that an answer names every faulty field.
type binder struct {
	c        cursor
	problems []fault.Problem
	extras   Extras
}

// MissingFieldChecker is a request with fields that are required depending on other fields. MissingFields lists the
// missing ones, so that an answer names them together with the fields that are always
// required. It runs after all sent fields were read; Validate checks what fields mean
// together.
type MissingFieldChecker interface{ MissingFields() []fault.Problem }

var binders = sync.Pool{New: func() any { return new(binder) }}

// Bind reads a request and checks it; its result is for Call. The sources come in the order of
// the method: a path parameter wins over everything; on GET the query wins over the body
// (D-GEN-01), on DELETE the body over the query (D-GEN-02); other methods have a body only. A
// key of the winning source is ignored in the other one, so a fault there is not reported.
//
// Errors: INVALID_FIELD with every faulty field, or without one when the body is
// not a strict JSON object.
func (e *Endpoint) Bind(q Query, body []byte) (any, Extras, error) {
	if len(body) > 0 {
		if err := checkObject(body); err != nil {
			return nil, Extras{}, err
		}
	}
	b := binders.Get().(*binder)
	defer func() {
		*b = binder{}
		binders.Put(b)
	}()
	in := reflect.New(e.plan.typ)
	v := in.Elem()
	var got bitset
	for name, value := range q.Params {
		if i, ok := e.plan.index[name]; ok {
			f, before := &e.plan.fields[i], len(b.problems)
			f.codec.text(b, v.FieldByIndex(f.index), value)
			b.within(before, f.name)
			got.set(i)
		}
	}
	switch e.Method {
	case "GET":
		b.query(e.plan, v, &got, q.Raw)
		b.body(e.plan, v, &got, body)
	case "DELETE":
		b.body(e.plan, v, &got, body)
		b.query(e.plan, v, &got, q.Raw)
	default:
		b.query(nil, v, &got, q.Raw)
		b.body(e.plan, v, &got, body)
	}
	readable := len(b.problems) == 0
	b.finish(e.plan, v, &got)
	if lacks, ok := in.Interface().(MissingFieldChecker); ok && readable {
		for _, p := range lacks.MissingFields() {
			if !b.faulty(p.Field) {
				b.problems = append(b.problems, p)
			}
		}
	}
	if len(b.problems) > 0 {
		return nil, b.extras, fault.All(b.problems)
	}
	if list, ok := in.Interface().(interface{ sent(query url.Values) }); ok {
		list.sent(e.plan.asQuery(q.Raw, body))
	}
	if check, ok := in.Interface().(interface{ Validate() error }); ok {
		if err := check.Validate(); err != nil {
			return nil, b.extras, err
		}
	}
	if e.check != nil {
		if err := e.check(in.Interface()); err != nil {
			return nil, b.extras, err
		}
	}
	return in.Interface(), b.extras, nil
}

func (b *binder) body(p *plan, v reflect.Value, got *bitset, body []byte) {
	if len(body) == 0 {
		return
	}
	b.c = newCursor(body)
	before := *got
	b.members(p, v, got, &before)
}

// members reads an object into v. Fields in skip belong to a source that wins
// over this one. For the outermost object, where skip is not nil, the extras are
// noted too.
func (b *binder) members(p *plan, v reflect.Value, got, skip *bitset) {
	i := -1
	for more := b.c.open(); more; more = b.c.next() {
		key := b.c.key()
		if skip != nil && len(key) > 2 && (key[0] == '_' || key[0] == 'o') {
			b.extra(key)
		}
		next, known := p.find(key, i+1)
		if !known && p.strict {
			before := len(b.problems)
			b.refuse("is not a known field")
			b.within(before, string(key))
			continue
		}
		if !known || skip != nil && skip.has(next) {
			b.c.raw()
			continue
		}
		i = next
		f := &p.fields[i]
		if b.c.peek() == 'n' && !f.nullable { // null is the same as not sent (D-GEN-10)
			b.c.raw()
			continue
		}
		dst := v.FieldByIndex(f.index)
		before := len(b.problems)
		if !got.has(i) {
			f.codec.json(b, dst)
		} else { // both spellings (D-GEN-18)
			b.same(f, dst, f.codec.json)
		}
		got.set(i)
		b.within(before, f.name)
	}
}

// extra notes a parameter that every endpoint takes, without consuming it.
func (b *binder) extra(key []byte) {
	var dst *string
	switch string(key) {
	case "_requesterLanguage":
		if dst = &b.extras.Language; *dst != "" { // the query's wins
			return
		}
	case "otp":
		dst = &b.extras.OTP
	default:
		return
	}
	if b.c.peek() == '"' {
		*dst = b.c.ahead()
	}
}

// query reads a query string; with no plan it looks for the extras alone.
func (b *binder) query(p *plan, v reflect.Value, got *bitset, raw string) {
	if raw == "" {
		return
	}
	won := *got
	var seen [maxFields]string // the spelling under which a field came first
	for pair := range strings.SplitSeq(raw, "&") {
		key, value, _ := strings.Cut(pair, "=")
		key, okKey := unquery(key)
		if !okKey || key == "" {
			continue
		}
		if key == "_requesterLanguage" {
			if s, ok := unquery(value); ok {
				b.extras.Language = s
			}
		}
		if p == nil {
			continue
		}
		i, known := p.index[strings.TrimSuffix(key, "[]")]
		if !known || won.has(i) {
			continue
		}
		f := &p.fields[i]
		if len(key) > 2 && key[len(key)-1] == ']' && !f.slice {
			continue
		}
		before := len(b.problems)
		value, ok := unquery(value)
		switch {
		case !ok:
			b.fail("is not valid text")
		case got.has(i) && !f.slice && key == seen[i]: // two readers of the request could choose different values
			b.fail("is given more than once")
		case got.has(i) && !f.slice:
			b.same(f, v.FieldByIndex(f.index), func(b *binder, other reflect.Value) { f.codec.text(b, other, value) })
		default:
			f.codec.text(b, v.FieldByIndex(f.index), value)
		}
		got.set(i)
		if seen[i] == "" {
			seen[i] = key
		}
		b.within(before, f.name)
	}
}

// same reads a field under its other spelling: the value must be equal.
func (b *binder) same(f *field, first reflect.Value, read func(*binder, reflect.Value)) {
	before, other := len(b.problems), reflect.New(f.typ).Elem()
	if read(b, other); len(b.problems) == before && !reflect.DeepEqual(first.Interface(), other.Interface()) {
		b.fail("differs from " + f.alias)
	}
}

// finish reports the missing fields of an object.
func (b *binder) finish(p *plan, v reflect.Value, got *bitset) {
	for i := range p.fields {
		f := &p.fields[i]
		switch {
		case !got.has(i) && f.deflt != nil:
			f.codec.text(b, v.FieldByIndex(f.index), *f.deflt)
		case !f.required:
		case !got.has(i):
			b.problems = append(b.problems, fault.Problem{Field: f.name, Message: "is required"})
		case f.typ.Kind() == reflect.String && !f.blank && !b.faulty(f.name) &&
			strings.TrimSpace(v.FieldByIndex(f.index).String()) == "":
			b.problems = append(b.problems, fault.Problem{Field: f.name, Message: "must not be blank"})
		}
	}
}

func (b *binder) faulty(name string) bool {
	return slices.ContainsFunc(b.problems, func(p fault.Problem) bool { return p.Field == name })
}

// fail reports a problem of the value being read; the fields around it add their
// names by within.
func (b *binder) fail(message string) bool {
	b.problems = append(b.problems, fault.Problem{Message: message})
	return false
}

// refuse is fail for a value that has not been read yet.
func (b *binder) refuse(message string) {
	b.c.raw()
	b.fail(message)
}

// within puts name in front of the problems found since there were n.
func (b *binder) within(n int, name string) {
	for i := n; i < len(b.problems); i++ {
		if len(name) > 64 { // the key of a map, which the client chose
			name = strings.ToValidUTF8(name[:64], "")
		}
		switch f := &b.problems[i].Field; {
		case *f == "":
			*f = name
		case (*f)[0] == '[':
			*f = name + *f
		default:
			*f = name + "." + *f
		}
	}
}

// reread runs read with the cursor on another text, which is checked first.
func (b *binder) reread(s string, read func()) {
	text := []byte(s)
	if checkValue(text) != nil {
		b.fail("must be JSON")
		return
	}
	outer := b.c
	b.c = newCursor(text)
	read()
	b.c = outer
}

// unquery undoes the encoding of a query's key or value. A text without encoding is not
// copied: raw is the caller's own copy.
func unquery(raw string) (string, bool) {
	s := raw
	if strings.ContainsAny(raw, "%+") {
		var err error
		if s, err = url.QueryUnescape(raw); err != nil {
			return "", false
		}
	}
	return s, utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
