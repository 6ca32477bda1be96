package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
	"castellan/internal/blackbox"
)

// Every field of every endpoint is sent with invalid values, one at a time, in the example of
// the endpoint (SEC-26, SEC-27). Invalid fields are refused by name and change nothing, fields
// that the server owns are ignored, and no text injects into a query.
func TestFields(t *testing.T) {
	onBoth(t, func(t *testing.T, l *live) {
		all := l.tell(withOwned)
		l.forgets(serverOwned)
		if !l.postgres() || len(oneDatabase()) > 1 {
			for some := range slices.Chunk(all, 8) {
				l.refusesWrong(some)
			}
		}
		l.takesTexts(all)
	})
}

// refusesWrong sends what is wrong of some endpoints; the database stays as it is.
func (l *live) refusesWrong(some []told) {
	l.t.Helper()
	headers := make([]blackbox.Headers, len(some))
	for i, x := range some {
		who := l.before(x.Endpoint)
		noOTP := x.Endpoint
		noOTP.OTP = false // fields are judged first (D-GEN-19)
		path, body := target(x.Endpoint, x.request)
		headers[i] = l.headers(noOTP, who, path, body)
	}
	blackbox.Until(l.t, 30*time.Second, "the jobs of the examples end", func() bool {
		return l.count("job WHERE state IN ('queued', 'running')") == 0 && l.count("users WHERE folded IS NULL") == 0
	})
	before, sent := l.dump(), 0
	for i, x := range some {
		for _, w := range wrongs(x) {
			path, body := w.target(x)
			if x.WantsBodyHash && x.Credential != rest.PAuthOrDevice {
				headers[i] = l.headers(x.Endpoint, l.user, path, body)
			}
			a := l.Do(l.t, x.Method, path, body, headers[i])
			sent++
			if complaint := w.judge(x, a); complaint != "" {
				l.t.Errorf("%s with %s: %s\nto %.200s %.400s: %s", x.Key(), w.what, complaint, path, body, a)
			}
		}
	}
	l.t.Logf("%d wrong requests to %d endpoints", sent, len(some))
	for name, rows := range l.dump() {
		if before[name] != rows {
			l.t.Errorf("refused requests of %s to %s changed the table %s", some[0].Key(), some[len(some)-1].Key(), name)
		}
	}
}

// wrong is an example with one field spoilt.
type wrong struct {
	field  rest.Field
	in     *rest.Field // the field whose object, or whose first element, holds it; nil: the request
	what   string
	value  string // JSON; "": the field is missing
	query  bool   // in the query, as text
	faulty bool   // the text cannot be read at all
}

// target is the request of a wrong one.
func (w wrong) target(x told) (path, body string) {
	if x.Method == "GET" {
		q, _ := url.ParseQuery(x.request)
		q.Del(w.field.Name)
		if w.field.Alias != "" {
			q.Del(w.field.Alias)
		}
		if w.query {
			q.Set(w.field.Name, "\x00\x00")
			return target(x.Endpoint, strings.ReplaceAll(q.Encode(), "%00%00", w.value))
		}
		path, _ = target(x.Endpoint, q.Encode())
		if w.value != "" {
			body = `{"` + w.field.Name + `":` + w.value + `}`
		}
		return path, body
	}
	fields := map[string]json.RawMessage{}
	if x.request != "" && json.Unmarshal([]byte(x.request), &fields) != nil {
		return x.Path, x.request
	}
	var text []byte
	if w.in == nil {
		text = w.spoil(fields)
	} else {
		inner := map[string]json.RawMessage{}
		var list []json.RawMessage
		if outer := fields[w.in.Name]; json.Unmarshal(outer, &list) == nil && len(list) > 0 {
			_ = json.Unmarshal(list[0], &inner)
			list[0] = w.spoil(inner)
			fields[w.in.Name], _ = json.Marshal(list)
		} else {
			_ = json.Unmarshal(outer, &inner)
			fields[w.in.Name] = w.spoil(inner)
		}
		text, _ = json.Marshal(fields)
	}
	path, body = target(x.Endpoint, string(text)) // before the text becomes one that cannot be read
	return path, strings.ReplaceAll(body, `"\u0000here"`, w.value)
}

// spoil is an object with the wrong value.
func (w wrong) spoil(fields map[string]json.RawMessage) json.RawMessage {
	delete(fields, w.field.Name)
	delete(fields, w.field.Alias)
	if w.value != "" {
		fields[w.field.Name] = json.RawMessage(`"\u0000here"`)
	}
	text, _ := json.Marshal(fields)
	return text
}

// judge says what is wrong with an answer; "" where nothing is.
func (w wrong) judge(x told, a blackbox.Answer) string {
	switch {
	case a.Code() == string(fault.RecordNotFound) && slices.Contains(x.Errors, fault.CharLimitExceeded):
		return "" // the example's record is gone, and the interface looks for it first (D-WAD-03)
	case a.Status != 400:
		return "is not refused by 400"
	case w.faulty || a.Code() == "": // a shape of the endpoint's own names no fields
		return ""
	case a.Code() != string(fault.InvalidField) && a.Code() != string(fault.CharLimitExceeded):
		return "is refused by another code"
	}
	for _, e := range a.Problem().Errors {
		if phraseFiles(e.Field, w) {
			return ""
		}
	}
	return "is refused without its name"
}

// phraseFiles reports whether a refusal is about the invalid field: details[0].title of details.
func phraseFiles(field string, w wrong) bool {
	if w.in != nil {
		tail, ok := strings.CutPrefix(strings.TrimPrefix(field, w.in.Name), "[0]")
		if !ok {
			tail = strings.TrimPrefix(field, w.in.Name)
		}
		field = strings.TrimPrefix(tail, ".")
	}
	tail, ok := strings.CutPrefix(field, w.field.Name)
	return ok && (tail == "" || tail[0] == '.' || tail[0] == '[')
}

// places are the fields of a request, and those of the objects in its example.
func places(x told) (all []wrong) {
	for _, f := range x.Fields() {
		if f.InPath || f.Name == "_requesterLanguage" {
			continue
		}
		all = append(all, wrong{field: f})
		if x.Method == "GET" || !strings.Contains(x.request, `"`+f.Name+`"`) {
			continue
		}
		for _, inner := range f.Inner() {
			all = append(all, wrong{field: inner, in: &f})
		}
	}
	return all
}

// wrongs are the wrong requests of an endpoint.
func wrongs(x told) (all []wrong) {
	for _, w := range places(x) {
		all = append(all, wrongsOf(x, w.field, w.in)...)
	}
	return all
}

func wrongsOf(x told, f rest.Field, in *rest.Field) (all []wrong) {
	name := f.Name
	if in != nil {
		name = in.Name + "." + name
	}
	add := func(what, value string) {
		all = append(all, wrong{field: f, in: in, what: what + " as " + name, value: value})
	}
	if f.Required {
		add("nothing", "")
		if !f.Nullable {
			add("null", "null")
		}
		if f.Type.Kind() == reflect.String && !f.Blank {
			add("a blank", `" \t"`)
		}
	}
	for _, v := range badValues(f) {
		what := v
		if len(what) > 30 {
			what = what[:30] + "…"
		}
		add(what, v)
	}
	if holdsAny(f.Type) {
		return all
	}
	add("a NUL byte", `"a\u0000b"`)
	all = append(all, wrong{field: f, in: in, what: "bad UTF-8 as " + name, value: "\"a\xffb\"", faulty: true})
	if x.Method == "GET" {
		all = append(all, wrong{field: f, what: "a NUL byte in the query as " + name, value: "a%00b", query: true},
			wrong{field: f, what: "bad UTF-8 in the query as " + name, value: "a%ffb", query: true})
	}
	return all
}

func holdsAny(t reflect.Type) bool {
	return t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[any]()
}

// badValues are JSON values that a field cannot take.
func badValues(f rest.Field) []string {
	bad := []string{`{"x":[1]}`, `[[1]]`}
	switch f.Type {
	case reflect.TypeFor[rest.ID]():
		return append(bad, `"x"`, `1.5`, `-1`, `true`, `9007199254740993`, `1e300`)
	case reflect.TypeFor[rest.Time]():
		return append(bad, `"yesterday"`, `true`, `1e300`, `1.5`, `"2024-02-30"`)
	case reflect.TypeFor[rest.Decimal](), reflect.TypeFor[amount.Amount]():
		return append(bad, `"x"`, `true`, `1e400`, `"1,5"`, `"NaN"`)
	case reflect.TypeFor[rest.JSON]():
		return []string{`17`, `true`, `"{"`, `"x"`}
	case reflect.TypeFor[rest.Strings]():
		return append(bad, `17`, `true`)
	}
	if holdsAny(f.Type) {
		return nil
	}
	switch k := f.Type.Kind(); {
	case k == reflect.String:
		bad = append(bad, `true`)
		if _, own := reflect.New(f.Type).Interface().(json.Unmarshaler); !own { // which may take a number
			bad = append(bad, `17`)
		}
		if _, ok := said(f, "enum"); ok {
			bad = append(bad, `"NOT_ONE"`, `""`)
		}
		if n, err := strconv.Atoi(first(said(f, "maxLength"))); err == nil && n < 8000 {
			bad = append(bad, `"`+strings.Repeat("x", n+1)+`"`)
		}
		if n, err := strconv.Atoi(first(said(f, "minLength"))); err == nil && n > 0 {
			bad = append(bad, `"`+strings.Repeat("x", n-1)+`"`)
		}
		if p, ok := said(f, "pattern"); ok && p != `\S` {
			bad = append(bad, `"!"`)
		}
	case k == reflect.Bool:
		bad = append(bad, `"yes"`, `2`)
	case k >= reflect.Int && k <= reflect.Int64:
		bad = append(bad, `"x"`, `1.5`, `true`, `1e300`, `99999999999999999999`)
		for name, step := range map[string]int64{"minimum": -1, "maximum": 1} {
			if n, err := strconv.ParseInt(first(said(f, name)), 10, 64); err == nil {
				bad = append(bad, fmt.Sprint(n+step))
			}
		}
	case k == reflect.Slice:
		bad = []string{`{"x":[1]}`, `17`, `true`, `[{"x":[1]}]`}
		if f.Type.Elem().Kind() == reflect.Struct {
			bad = []string{`{"x":[1]}`, `17`, `true`, `[17]`, `["x"]`}
		}
	case k == reflect.Struct, k == reflect.Map:
		bad = []string{`17`, `true`, `[1]`}
	}
	return bad
}

// said is a tag that the binder or the domain holds a field to.
func said(f rest.Field, name string) (string, bool) {
	if v, ok := f.Tag.Lookup(name); ok {
		return v, true
	}
	return f.Tag.Lookup("doc." + name)
}

func first(s string, _ bool) string { return s }

// texts are what attackers type, and what honest people do.
var texts = []string{
	`x'; DROP TABLE users; -- " OR 1=1 \`, `1) UNION SELECT * FROM keys /*`,
	`<script>alert(1)</script><img src=x onerror=alert(1)>`,
	`%_${7*7}{{7*7}}../../etc/passwd`, "ğüşİöç 𝒳 \u202e عربي", long,
}

var long = strings.Repeat("longest ", 1500)

// takesTexts sends every text as every field that takes one: it is kept as it came,
// or refused, and nothing else happens.
func (l *live) takesTexts(all []told) {
	l.t.Helper()
	sent, kept := 0, 0
	for _, x := range all {
		for _, w := range places(x) {
			f := w.field
			if _, enum := f.Tag.Lookup("enum"); enum || f.Type.Kind() != reflect.String ||
				f.Type == reflect.TypeFor[rest.Decimal]() {
				continue
			}
			who := l.before(x.Endpoint)
			for _, text := range texts {
				value, _ := json.Marshal(text)
				w.value = string(value)
				if x.Method == "GET" {
					w.query, w.value = true, url.QueryEscape(text[:min(len(text), 4000)])
				}
				path, body := w.target(x)
				a := l.Do(l.t, x.Method, path, body, l.headers(x.Endpoint, who, path, body))
				sent++
				if a.Status == 200 {
					kept++
				}
				if a.Status >= 500 {
					l.t.Errorf("%s with %.40q as %s: %s", x.Key(), text, f.Name, a)
				}
				if a.Status != 200 || x.Starts != "" || x.Method == "GET" {
					continue
				}
				if bound, _ := strconv.Atoi(first(said(f, "maxLength"))); text == long && bound < len(long) {
					l.t.Errorf("%s keeps %d characters of %s: bound it by maxLength", x.Key(), len(text), f.Name)
				}
				var answer any
				storetest.Must(l.t, json.Unmarshal(a.Body, &answer))
				if got, ok := found(answer, f.Name); ok && w.in == nil && got != strings.TrimSpace(text) && got != text &&
					!strings.EqualFold(got, text) && !isHTML(f) {
					l.t.Errorf("%s keeps %.40q of %s as %.60q", x.Key(), text, f.Name, got)
				}
			}
		}
	}
	l.t.Logf("%d texts were sent, %d answered by 200", sent, kept)
	if a := l.Do(l.t, "GET", "/health/ready", nil, nil); a.Status != 200 || l.count("users") < 2 {
		l.t.Errorf("after the texts: %s, %d users", a, l.count("users"))
	}
}

// isHTML reports whether a text is sanitized before it is stored (SEC-36).
func isHTML(f rest.Field) bool {
	return strings.Contains(f.Name, "html") || strings.Contains(f.Tag.Get("doc"), "HTML")
}

// found is the text of a field of the record in an answer.
func found(v any, name string) (string, bool) {
	object, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	if inner, ok := object["data"]; ok {
		return found(inner, name)
	}
	text, ok := object[name].(string)
	return text, ok
}
