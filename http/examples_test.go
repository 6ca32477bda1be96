package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
)

const examplesFile = "examples.json"

// Every operation has a request that was sent to the program, and its answer; OpenAPI publishes both.
func TestGoldenExamples(t *testing.T) {
	if *update { // the answers are checked against the document
		writeDocument(t)
	}
	dir := t.TempDir()
	l := start(t, dir, databases["sqlite"](t))
	lines := map[string]string{}
	for _, x := range l.tell(nil) {
		line := storetest.Value(json.Marshal(l.sample(x)))(t)
		lines[x.ID] = string(line)
	}
	var got bytes.Buffer
	got.WriteString("{\n")
	for i, e := range httpapi.Endpoints() {
		fmt.Fprintf(&got, "%s%q: %s", []string{"", ",\n"}[min(i, 1)], e.ID, lines[e.ID])
	}
	got.WriteString("\n}\n")
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		storetest.Must(t, err)
		_, err = w.Write(got.Bytes())
		storetest.Must(t, errors.Join(err, w.Close(), os.WriteFile(examplesFile, got.Bytes(), 0o644),
			os.WriteFile(examplesFile+".gz", packed.Bytes(), 0o644)))
		httpapi.SetExamples(packed.Bytes())
	}
	if have, err := os.ReadFile(examplesFile); err != nil || !bytes.Equal(have, got.Bytes()) {
		t.Errorf("http/%s is not what the service answers (make golden writes it): %v\n%s", examplesFile, err,
			difference(have, got.Bytes()))
	}
}

// TestGoldenOpenAPI keeps the published document. It follows TestGoldenExamples, which may write new examples.
func TestGoldenOpenAPI(t *testing.T) {
	if *update {
		writeDocument(t)
	}
	got := storetest.Value(httpapi.OpenAPI("1", "", ""))(t)
	if want, err := os.ReadFile(documentFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/openapi.json is not what the table says (make golden writes it): %v", err)
	}
}

const documentFile = "../docs/openapi.json"

func writeDocument(t *testing.T) {
	t.Helper()
	text := storetest.Value(httpapi.OpenAPI("1", "", ""))(t)
	storetest.Must(t, os.WriteFile(documentFile, text, 0o644))
}

// difference is the first lines in which two texts differ.
func difference(have, want []byte) string {
	a, b := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: %s\nanswered: %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, answered %d", len(a), len(b))
}

// sample is an executed example as it is published.
func (l *live) sample(x told) (s rest.Sample) {
	request := sampled(l, x.request, true)
	switch {
	case request == "":
	case json.Valid([]byte(request)):
		s.Request = json.RawMessage(request)
	default:
		query := storetest.Value(url.ParseQuery(request))(l.t)
		fields := map[string]string{}
		for name := range query {
			fields[name] = query.Get(name)
		}
		s.Request, _ = json.Marshal(fields) // texts never fail
	}
	if x.answer.Status != 200 {
		s.Status = x.answer.Status
	}
	if json.Valid(x.answer.Body) {
		s.Answer = json.RawMessage(sampled(l, string(x.answer.Body), false))
	} else {
		s.Answer, _ = json.Marshal(fmt.Sprintf("%d bytes of %s", len(x.answer.Body), x.answer.Header.Get("Content-Type")))
	}
	return s
}

// sampled is a JSON text with an example in place of each value that differs between runs.
// Lists that need not be whole have only their first two elements. A text that is no JSON,
// such as a query, keeps all but ids.
func sampled(l *live, text string, whole bool) string {
	text = strings.ReplaceAll(text, l.URL, "http://127.0.0.1:8080")
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := ordered(d)
	if err != nil || text == "" {
		return unstable.ReplaceAllString(text, "01JD3X4Q7V0S8D4T2M6B9N1ZKA")
	}
	return sampler{whole}.write(v, "", "")
}

var (
	unstable = regexp.MustCompile(`\b(?:../../)?01[0-9A-HJKMNP-TV-Z]{24}\b`)
	instant  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	day      = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	written  = regexp.MustCompile(`^\d\d\.\d\d\.\d{4} \d\d:\d\d:\d\d$`)
	random   = regexp.MustCompile(`^[A-Za-z0-9_-]{40,}$`)
	numbered = regexp.MustCompile(`^[34]\d{15}$`)                  // begins with an instant
	keyed    = regexp.MustCompile(`^([a-z]+\.)[A-Za-z0-9_-]{43}$`) // the key of a service client
	signed   = regexp.MustCompile(`^(eyJhbGciOiJFZERTQSIsImtpZCI6)[\w-]+\.[\w-]+\.[\w-]+$`)
	chained  = regexp.MustCompile(`^01[0-9A-HJKMNP-TV-Z]{24}-\d+:\d+$`)
	// drawn are fields whose texts are drawn by lot, or are those of this process.
	drawn  = []string{"value", "node", "version", "base32", "recoveryCode", "kid"}
	idName = regexp.MustCompile(`^(id|.*Id)$`)
)

// sampleKey stands for a random text.
const sampleKey = "n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"

// member is one of an object, whose order is that of the answer.
type member struct {
	name  string
	value any
}

// ordered reads a value; an object becomes members in their order.
func ordered(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			object = append(object, member{fmt.Sprint(name), value})
		}
		_, err = d.Token()
		return object, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			value, err := ordered(d)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = d.Token()
		return list, err
	}
	return token, nil
}

// sampler writes values of examples.
type sampler struct{ whole bool }

// write indents a value; name is that of its field.
func (s sampler) write(v any, name, indent string) string {
	inner := indent + "  "
	switch x := v.(type) {
	case []member:
		if name == "activations" { // a job that an example started may be over by now
			x = slices.DeleteFunc(slices.Clone(x), func(m member) bool { return m.name == "job" })
		}
		lines := rest.Each(x, func(m member) string {
			if name == "activations" { // as many as there happen to be
				m.value = json.Number("1")
			}
			return inner + quote(m.name) + ": " + s.write(m.value, m.name, inner)
		})
		if len(lines) == 0 {
			return "{}"
		}
		return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
	case []any:
		shown := len(x)
		if !s.whole {
			shown = min(2, len(x))
		}
		lines := rest.Each(x[:shown], func(v any) string { return inner + s.write(v, name, inner) })
		if len(x) == 0 {
			return "[]"
		}
		return "[\n" + strings.Join(lines, ",\n") + "\n" + indent + "]"
	case json.Number:
		switch sample, ok := rest.NumberExamples[name]; {
		case len(x) == 13:
			return "1769853600000"
		case name == "expire": // seconds that are left
			return fmt.Sprint(sample)
		case ok && (idName.MatchString(name) || sample > 1000):
			return fmt.Sprint(sample)
		case idName.MatchString(name) && name != "levelId":
			return "12"
		}
		return string(x)
	case string:
		return quote(s.stable(name, x))
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// stable is a text, or its example where another run would answer another one.
func (s sampler) stable(name, text string) string {
	sample, ok := rest.TextExamples[name]
	host, _ := os.Hostname()
	switch {
	case ok && slices.Contains(drawn, name), ok && strings.Contains(strings.ToLower(name), "password"):
		return sample
	case text == host:
		return "castellan-1"
	case chained.MatchString(text):
		return sample + "-0:42"
	case numbered.MatchString(text) && idName.MatchString(name):
		return "3677386137600123"
	case unstable.MatchString(text) && ok && unstable.MatchString(sample):
		return unstable.ReplaceAllString(text, sample)
	case unstable.MatchString(text):
		return unstable.ReplaceAllString(text, "01JD3X4Q7V0S8D4T2M6B9N1ZKA")
	case instant.MatchString(text):
		return "2026-01-31T10:00:00.000Z"
	case name == "description" && day.MatchString(text) && !s.whole: // of a count of today
		return "2026-01-31"
	case written.MatchString(text):
		return "31.01.2026 13:00:00"
	case random.MatchString(text) && (!s.whole || len(text) == 43): // 43: a key
		return sampleKey
	case keyed.MatchString(text):
		return keyed.ReplaceAllString(text, "${1}"+sampleKey)
	case signed.MatchString(text): // a token: what every header begins with
		return signed.ReplaceAllString(text, "$1…")
	case len(text) > 80 && !s.whole:
		return string([]rune(text)[:60]) + "…"
	}
	return text
}

func quote(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSpace(out.String())
}

// An example names only what is answered before it.
func TestExamplesNameEarlierOperations(t *testing.T) {
	known := map[string]bool{"user": true, "admin": true, "phone": true, "tablet": true, "challenge": true,
		"deposit": true, "withdrawal": true}
	for _, e := range script() {
		for _, name := range names(e) {
			if !known[name] {
				t.Errorf("the example of %s names %s, which comes later or never", e.Key(), name)
			}
		}
		known[e.ID] = true
	}
}

// serverOwned is sent for everything that the server fills in (SEC-26).
const serverOwned = "SENT-BY-THE-CLIENT"

var owned = []string{
	"createdAt", "updatedAt", "created_at", "updated_at", "cdate", "udate", "cuserid", "uuserid", "createdBy", "updatedBy",
	"createDateTimeStamp", "updateDateTimeStamp", "requestor_userid", "approver_rejection_userid", "actorId", "userId",
	"roles", "isAdmin", "tenantId", "version", "balance", "locked", "slug", "hash", "path", "status_code",
}

// withOwned adds to a body what the server owns: fields of the answer and others that
// are no fields of the request.
func withOwned(e rest.Endpoint, request string) string {
	if e.Method == "GET" || request == "" || e.WantsBodyHash {
		return request
	}
	mine := map[string]bool{}
	for _, f := range e.Fields() {
		mine[f.Name], mine[f.Alias] = true, true
	}
	names := slices.Clone(owned)
	if e.Out != nil {
		names = append(names, answered(e.Out, nil)...)
	}
	var extra string
	for _, name := range names {
		if !mine[name] {
			mine[name] = true
			extra += fmt.Sprintf(",%q:%q", name, serverOwned)
		}
	}
	return strings.TrimSuffix(request, "}") + extra + "}"
}

// answered are the names of the fields of an answer.
func answered(t reflect.Type, above []reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(above, t) {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && name != "data" {
			names = append(names, name)
		}
		names = append(names, answered(t.Field(i).Type, append(above, t))...)
	}
	return names
}
