package rest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// endpointOf is an endpoint of one request type that answers nothing.
func endpointOf[In any](method string) Endpoint {
	fn := func(context.Context, Caller, In) (None, error) { return None{}, nil }
	return define(method, "/t", "", NoAuth, handler[In, None](fn), nil)
}

// bound binds a request and returns what the handler would see.
func bound[In any](t *testing.T, method, query, body string) (In, error) {
	t.Helper()
	e := endpointOf[In](method)
	in, _, err := e.Bind(Query{Raw: query}, []byte(body))
	if err != nil {
		var zero In
		return zero, err
	}
	return *in.(*In), nil
}

// faults are the faulty fields of an INVALID_FIELD, in order.
func faults(t *testing.T, err error) (names []string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.InvalidField {
		t.Fatalf("error %v, want INVALID_FIELD", err)
	}
	for _, p := range f.Fields {
		names = append(names, p.Field)
	}
	if len(names) > 0 && names[0] != f.Field {
		t.Errorf("field %q is not the first of %q", f.Field, names)
	}
	return names
}

type pair struct {
	Code string `json:"code"`
	N    int    `json:"n"`
}

type everything struct {
	S    *string          `json:"s"`
	B    *bool            `json:"b"`
	N    *int64           `json:"n"`
	ID   *ID              `json:"id"`
	D    *Decimal         `json:"d"`
	A    *amount.Amount   `json:"a"`
	T    *Time            `json:"t"`
	J    *JSON            `json:"j"`
	Raw  *json.RawMessage `json:"raw"`
	Any  any              `json:"any,omitempty"`
	Many Strings          `json:"many,omitempty"`
	L    []string         `json:"l,omitempty"`
	IDs  []ID             `json:"ids,omitempty"`
	M    map[string]int   `json:"m,omitempty"`
	O    *pair            `json:"o"`
	Os   []pair           `json:"os,omitempty"`
	Tup  [][]string       `json:"tup,omitempty"`
	Null Nullable[string] `json:"null"`
}

func ptr[T any](v T) *T { return &v }

type bindCase struct {
	name, sent string
	want       everything
	faults     []string
}

// binds checks what a request is bound to.
func (c bindCase) binds(t *testing.T, method, query, body string) {
	t.Run(c.name, func(t *testing.T) {
		got, err := bound[everything](t, method, query, body)
		if c.faults != nil {
			if names := faults(t, err); !reflect.DeepEqual(names, c.faults) && len(names)+len(c.faults) > 0 {
				t.Fatalf("faulty %q, want %q", names, c.faults)
			}
			return
		}
		storetest.Must(t, err)
		storetest.Same(t, got, c.want)
	})
}

func TestBindBody(t *testing.T) {
	for _, c := range []bindCase{
		{name: "nothing", sent: ``},
		{name: "empty object", sent: `{}`},
		{name: "null is not sent",
			sent: `{"s":null,"b":null,"n":null,"id":null,"d":null,"t":null,"j":null,"raw":null,"any":null,` +
				`"l":null,"m":null,"o":null}`},
		{name: "unknown fields are ignored", sent: `{"x":{"y":[1,"]}",{}]},"s":"v","z":"\""}`, want: everything{S: ptr("v")}},
		{name: "names are exact", sent: `{"S":"v","ſ":"v"}`},
		{name: "string", sent: `{"s":"a\n\u00e9😀"}`, want: everything{S: ptr("a\né😀")}},
		{name: "optional string may be blank", sent: `{"s":""}`, want: everything{S: ptr("")}},
		{name: "number for a string", sent: `{"s":5}`, faults: []string{"s"}},
		{name: "object for a string", sent: `{"s":{"a":1},"n":1}`, faults: []string{"s"}},
		{name: "bool", sent: `{"b":true}`, want: everything{B: ptr(true)}},
		{name: "string for a bool", sent: `{"b":"true"}`, faults: []string{"b"}},
		{name: "int", sent: `{"n":-9223372036854775808}`, want: everything{N: ptr(int64(-1 << 63))}},
		{name: "int of digits", sent: `{"n":"42"}`, want: everything{N: ptr(int64(42))}},
		{name: "int with a zero fraction", sent: `{"n":5.00}`, want: everything{N: ptr(int64(5))}},
		{name: "fraction for an int", sent: `{"n":5.5}`, faults: []string{"n"}},
		{name: "int with an exponent", sent: `{"n":1e3}`, want: everything{N: ptr(int64(1000))}},
		{name: "zero with an exponent", sent: `{"n":-0e0}`, want: everything{N: ptr(int64(0))}},
		{name: "int with a fraction and an exponent", sent: `{"n":9.223372036854775807E+18}`,
			want: everything{N: ptr(int64(1<<63 - 1))}},
		{name: "int with a negative exponent", sent: `{"n":1500e-2}`, want: everything{N: ptr(int64(15))}},
		{name: "id with an exponent", sent: `{"id":7e0}`, want: everything{ID: ptr(ID(7))}},
		{name: "fraction with an exponent for an int", sent: `{"n":1e-3}`, faults: []string{"n"}},
		{name: "int far beyond 64 bits", sent: `{"n":1e999999999}`, faults: []string{"n"}},
		{name: "exponent in digits", sent: `{"n":"1e3"}`, faults: []string{"n"}},
		{name: "int beyond 64 bits", sent: `{"n":9223372036854775808}`, faults: []string{"n"}},
		{name: "int with a plus sign", sent: `{"n":"+1"}`, faults: []string{"n"}},
		{name: "int with a space", sent: `{"n":" 1"}`, faults: []string{"n"}},
		{name: "bool for an int", sent: `{"n":true}`, faults: []string{"n"}},
		{name: "id", sent: `{"id":9007199254740991}`, want: everything{ID: ptr(ID(MaxID))}},
		{name: "id of digits", sent: `{"id":"7"}`, want: everything{ID: ptr(ID(7))}},
		{name: "id too large", sent: `{"id":9007199254740992}`, faults: []string{"id"}},
		{name: "negative id", sent: `{"id":-1}`, faults: []string{"id"}},
		{name: "decimal keeps every digit", sent: `{"d":12345678901234567890.123456789012345678}`,
			want: everything{D: ptr(Decimal("12345678901234567890.123456789012345678"))}},
		{name: "decimal of text", sent: `{"d":"0.10"}`, want: everything{D: ptr(Decimal("0.1"))}},
		{name: "decimal of a small float", sent: `{"d":1e-7}`, want: everything{D: ptr(Decimal("0.0000001"))}},
		{name: "amount keeps every digit", sent: `{"a":999999999999999999.000000000000000001}`,
			want: everything{A: ptr(amount.Must("999999999999999999.000000000000000001"))}},
		{name: "amount of text", sent: `{"a":"-0.50"}`, want: everything{A: ptr(amount.Must("-0.5"))}},
		{name: "amount of a small float", sent: `{"a":1e-7}`, want: everything{A: ptr(amount.Must("0.0000001"))}},
		{name: "amount of too many units", sent: `{"a":1000000000000000000.000000000000000001}`, faults: []string{"a"}},
		{name: "amount of too many decimals", sent: `{"a":"0.0000000000000000001"}`, faults: []string{"a"}},
		{name: "amount of a huge exponent", sent: `{"a":1e400}`, faults: []string{"a"}},
		{name: "no amount", sent: `{"a":"NaN"}`, faults: []string{"a"}},
		{name: "object for an amount", sent: `{"a":{"hi":1}}`, faults: []string{"a"}},
		{name: "null for an amount", sent: `{"a":null}`},
		{name: "no decimal", sent: `{"d":"NaN"}`, faults: []string{"d"}},
		{name: "bool for a decimal", sent: `{"d":true}`, faults: []string{"d"}},
		{name: "time of milliseconds", sent: `{"t":1706695200000}`,
			want: everything{T: &Time{Time: time.UnixMilli(1706695200000).UTC()}}},
		{name: "day", sent: `{"t":"2024-01-31"}`,
			want: everything{T: &Time{Time: time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC), Day: true}}},
		{name: "no time", sent: `{"t":"yesterday"}`, faults: []string{"t"}},
		{name: "object for a time", sent: `{"t":{}}`, faults: []string{"t"}},
		{name: "json object", sent: `{"j":{"a": 1}}`, want: everything{J: ptr(JSON(`{"a": 1}`))}},
		{name: "json text", sent: `{"j":"{\"a\":1}"}`, want: everything{J: ptr(JSON(`{"a":1}`))}},
		{name: "json text that is not", sent: `{"j":"{\"a\":1,\"a\":2}"}`, faults: []string{"j"}},
		{name: "number for json", sent: `{"j":5}`, faults: []string{"j"}},
		{name: "raw keeps the text", sent: `{"raw":[1, 1.50]}`, want: everything{Raw: ptr(json.RawMessage(`[1, 1.50]`))}},
		{name: "any keeps numbers exact", sent: `{"any":{"a":[1.10]}}`,
			want: everything{Any: map[string]any{"a": []any{json.Number("1.10")}}}},
		{name: "one string", sent: `{"many":"a"}`, want: everything{Many: Strings{"a"}}},
		{name: "many strings", sent: `{"many":["a","b"]}`, want: everything{Many: Strings{"a", "b"}}},
		{name: "number for strings", sent: `{"many":5}`, faults: []string{"many"}},
		{name: "list", sent: `{"l":["a",""]}`, want: everything{L: []string{"a", ""}}},
		{name: "empty list", sent: `{"l":[]}`, want: everything{L: []string{}}},
		{name: "text for a list", sent: `{"l":"a,b"}`, faults: []string{"l"}},
		{name: "elements are counted", sent: `{"l":["a",5,null]}`, faults: []string{"l[1]", "l[2]"}},
		{name: "ids", sent: `{"ids":[1,"2"]}`, want: everything{IDs: []ID{1, 2}}},
		{name: "map", sent: `{"m":{"a":1}}`, want: everything{M: map[string]int{"a": 1}}},
		{name: "map values", sent: `{"m":{"a":"x","b":null}}`, faults: []string{"m.a", "m.b"}},
		{name: "object", sent: `{"o":{"code":"A","n":1,"more":0}}`, want: everything{O: &pair{"A", 1}}},
		{name: "object lacks", sent: `{"o":{}}`, faults: []string{"o.code", "o.n"}},
		{name: "list of objects", sent: `{"os":[{"code":"A","n":1},{"code":" ","n":"x"},5]}`,
			faults: []string{"os[1].n", "os[1].code", "os[2]"}},
		{name: "tuples", sent: `{"tup":[["TOTP"],["SMS","T1"]]}`, want: everything{Tup: [][]string{{"TOTP"}, {"SMS", "T1"}}}},
		{name: "nullable null", sent: `{"null":null}`, want: everything{Null: Nullable[string]{Sent: true, Null: true}}},
		{name: "nullable value", sent: `{"null":"x"}`, want: everything{Null: Nullable[string]{Sent: true, Value: "x"}}},
		{name: "nullable of another type", sent: `{"null":1}`, faults: []string{"null"}},
		{name: "all faults", sent: `{"s":1,"b":1,"l":1,"id":"x"}`, faults: []string{"s", "b", "l", "id"}},
		{name: "malformed", sent: `{"s":`, faults: []string{}},
		{name: "no object", sent: `[]`, faults: []string{}},
	} {
		c.binds(t, "POST", "", c.sent)
	}
}

func TestBindQuery(t *testing.T) {
	for _, c := range []bindCase{
		{name: "nothing", sent: ``},
		{name: "string", sent: `s=a+b%20c%C3%A9`, want: everything{S: ptr("a b cé")}},
		{name: "empty string", sent: `s=`, want: everything{S: ptr("")}},
		{name: "key alone", sent: `s`, want: everything{S: ptr("")}},
		{name: "encoded key", sent: `%73=v`, want: everything{S: ptr("v")}},
		{name: "empty pairs", sent: `&&s=v&`, want: everything{S: ptr("v")}},
		{name: "bad encoding", sent: `s=%zz`, faults: []string{"s"}},
		{name: "invalid UTF-8", sent: `s=%ff`, faults: []string{"s"}},
		{name: "NUL", sent: `s=%00`, faults: []string{"s"}},
		{name: "bad encoding of an unknown key", sent: `x=%zz&%zz=1`},
		{name: "true", sent: `b=true`, want: everything{B: ptr(true)}},
		{name: "1", sent: `b=1`, want: everything{B: ptr(true)}},
		{name: "false", sent: `b=false`, want: everything{B: ptr(false)}},
		{name: "0", sent: `b=0`, want: everything{B: ptr(false)}},
		{name: "yes", sent: `b=yes`, faults: []string{"b"}},
		{name: "number", sent: `n=-5&id=7&d=1.50&t=2024-01-31`, want: everything{N: ptr(int64(-5)), ID: ptr(ID(7)),
			D: ptr(Decimal("1.5")),
			T: &Time{Time: time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC), Day: true}}},
		{name: "amount", sent: `a=-12.5`, want: everything{A: ptr(amount.Must("-12.5"))}},
		{name: "no number", sent: `n=&id=x&d=&t=`, faults: []string{"n", "id", "d", "t"}},
		{name: "zone with a bare plus", sent: `t=2024-01-31T03:00:00+03:00`,
			want: everything{T: &Time{Time: time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC)}}},
		{name: "twice", sent: `s=a&s=a`, faults: []string{"s"}},
		{name: "brackets on a scalar are another name", sent: `s[]=a`},
		{name: "list by commas", sent: `l=a,b,%20c`, want: everything{L: []string{"a", "b", "c"}}},
		{name: "list by repetition", sent: `l=a&s=x&l=b`, want: everything{L: []string{"a", "b"}, S: ptr("x")}},
		{name: "list by brackets", sent: `ids[]=1&ids%5B%5D=2`, want: everything{IDs: []ID{1, 2}}},
		{name: "list by JSON", sent: `ids=[1,"2"]`, want: everything{IDs: []ID{1, 2}}},
		{name: "empty list", sent: `l=`, want: everything{L: []string{}}},
		{name: "list with a fault", sent: `ids=1,x`, faults: []string{"ids[1]"}},
		{name: "list by bad JSON", sent: `ids=[1,`, faults: []string{"ids"}},
		{name: "object", sent: `o={"code":"A","n":1}`, want: everything{O: &pair{"A", 1}}},
		{name: "object lacks", sent: `o={"code":"A"}`, faults: []string{"o.n"}},
		{name: "object is no JSON", sent: `o=A`, faults: []string{"o"}},
		{name: "object with a key twice", sent: `m={"a":1,"a":2}`, faults: []string{"m"}},
		{name: "map", sent: `m=%7B%22a%22%3A1%7D`, want: everything{M: map[string]int{"a": 1}}},
		{name: "json", sent: `j={"a":1}`, want: everything{J: ptr(JSON(`{"a":1}`))}},
		{name: "raw", sent: `raw=text&any=5`, want: everything{Raw: ptr(json.RawMessage(`"text"`)), Any: json.Number("5")}},
		{name: "strings", sent: `many=a&many=b`, want: everything{Many: Strings{"a", "b"}}},
		{name: "nullable", sent: `null=x`, want: everything{Null: Nullable[string]{Sent: true, Value: "x"}}},
	} {
		c.binds(t, "GET", c.sent, "")
	}
}

// TestSources: which of query and body wins, by method (D-GEN-01, 02).
func TestSources(t *testing.T) {
	type in struct {
		A *string `json:"a"`
		B *string `json:"b"`
		N *int    `json:"n"`
	}
	for _, c := range []struct{ method, query, body, a, b string }{
		{"GET", "a=q", `{"a":"b","b":"b"}`, "q", "b"},
		{"GET", "a=q", ``, "q", ""},
		{"GET", "", `{"a":"b"}`, "b", ""},
		{"GET", "n=1&a=q", `{"n":"not looked at"}`, "q", ""},
		{"DELETE", "a=q&b=q", `{"a":"b"}`, "b", "q"},
		{"DELETE", "a=q", ``, "q", ""},
		{"DELETE", "n=x", `{"n":1,"a":"b"}`, "b", ""},
		{"POST", "a=q", `{"b":"b"}`, "", "b"},
		{"PATCH", "a=q", `{"b":"b"}`, "", "b"},
		{"PUT", "a=q", ``, "", ""},
	} {
		got, err := bound[in](t, c.method, c.query, c.body)
		if err != nil {
			t.Fatalf("%s %s %s: %v", c.method, c.query, c.body, err)
		}
		text := func(p *string) string {
			if p == nil {
				return ""
			}
			return *p
		}
		if text(got.A) != c.a || text(got.B) != c.b {
			t.Errorf("%s ?%s %s = %q %q, want %q %q", c.method, c.query, c.body, text(got.A), text(got.B), c.a, c.b)
		}
	}
}

func TestPathParameter(t *testing.T) {
	type in struct {
		ID ID `json:"id"`
	}
	e := endpointOf[in]("GET")
	got, _, err := e.Bind(Query{Raw: "id=2", Params: map[string]string{"id": "1"}}, []byte(`{"id":3}`))
	if err != nil || got.(*in).ID != 1 {
		t.Fatalf("%+v, %v; want the path's 1", got, err)
	}
	if _, _, err := e.Bind(Query{Params: map[string]string{"id": "x"}}, nil); !reflect.DeepEqual(faults(t, err),
		[]string{"id"}) {
		t.Errorf("faulty %v", err)
	}
}

// either is a request of which one field or the other must be there.
type either struct {
	A *string `json:"a"`
	B *string `json:"b"`
	C string  `json:"c"`
}

func (e either) MissingFields() (missing []fault.Problem) {
	if e.A == nil && e.B == nil {
		missing = append(missing, fault.Problem{Field: "a", Message: "is required without b"})
	}
	return append(missing, fault.Problem{Field: "c", Message: "is always wanting"})
}

// TestLacks: what must be there depending on other fields is listed beside what
// must be there always, each field once, and only where everything sent was read.
func TestMissingFields(t *testing.T) {
	for body, want := range map[string]string{
		``: "c a", `{}`: "c a", `{"b":"x"}`: "c", `{"c":"x"}`: "a c", `{"a":5}`: "a c", `{"a":"x","c":" "}`: "c",
	} {
		_, err := bound[either](t, "POST", "", body)
		storetest.Equal(t, strings.Join(faults(t, err), " "), want, body, "faults")
	}
}

// leastAllocations is the smallest count of many runs: at random, the race detector empties pools.
func leastAllocations(run func()) float64 {
	least := math.Inf(1)
	for range 300 {
		least = min(least, testing.AllocsPerRun(1, run))
	}
	return least
}

// Every request with a body pays for these. Raise a bound only on purpose.
func TestAllocationsOfABody(t *testing.T) {
	e := endpointOf[benchIn]("POST")
	body, escaped := []byte(benchBody), []byte(`{"a":"\n"}`)
	in, _, err := e.Bind(Query{}, body)
	storetest.Must(t, err)
	out := any(Data[any]{in})
	for _, c := range []struct {
		name string
		most float64
		run  func() error
	}{
		{"checking", 0, func() error { return checkObject(body) }},
		{"checking, token by token", 0, func() error { return checkObject(escaped) }},
		{"binding: the struct and its four strings", 5, func() error {
			_, _, err := e.Bind(Query{}, body)
			return err
		}},
		{"encoding", 0, func() error {
			a, err := e.Encode(out)
			a.Release()
			return err
		}},
	} {
		got := leastAllocations(func() {
			storetest.Must(t, c.run())
		})
		if got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.most)
		}
	}
}
