package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestStrictJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":`, n-1) + `{}` + strings.Repeat(`}`, n-1) }
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"empty object", `{}`, true},
		{"white space", " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : null } \n", true},
		{"every kind", `{"s":"x","n":-1.5e+3,"z":0,"t":true,"f":false,"u":null,"a":[[],{}],"o":{"a":1}}`, true},
		{"same key in different objects", `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, true},
		{"surrogate pair", `{"a":"\ud83d\ude00"}`, true},
		{"text beyond ASCII", `{"ş":"العربية 😀"}`, true},
		{"escapes", `{"a":"\"\\\/\b\f\n\r\t\u00e9"}`, true},
		{"case matters in keys", `{"a":1,"A":2}`, true},
		{"as deep as may be", deep(maxDepth), true},

		{"nothing", ``, false},
		{"space only", `  `, false},
		{"null", `null`, false},
		{"array", `[1]`, false},
		{"string", `"a"`, false},
		{"number", `1`, false},
		{"second value", `{} {}`, false},
		{"trailing byte", `{}x`, false},
		{"byte order mark", "\ufeff{}", false},
		{"trailing comma", `{"a":1,}`, false},
		{"trailing comma in array", `{"a":[1,]}`, false},
		{"no comma", `{"a":1 "b":2}`, false},
		{"no colon", `{"a" 1}`, false},
		{"no value", `{"a":}`, false},
		{"bare key", `{a:1}`, false},
		{"single quotes", `{'a':1}`, false},
		{"comment", `{"a":1/**/}`, false},
		{"unfinished", `{"a":[1,2`, false},
		{"unfinished string", `{"a":"b`, false},
		{"unfinished escape", `{"a":"\`, false},
		{"unclosed in array", `{"a":[1}`, false},
		{"duplicate key", `{"a":1,"a":2}`, false},
		{"duplicate key, escaped", `{"a":1,"\u0061":2}`, false},
		{"duplicate key, nested", `{"x":[{"a":{"b":1,"b":2}}]}`, false},
		{"duplicate key among many", `{"a":1` + keys(40) + `,"a":2}`, false},
		{"duplicate late key among many", `{"a":1` + keys(40) + `,"k39":2}`, false},
		{"too deep", deep(maxDepth + 1), false},
		{"too deep in arrays", `{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`, false},
		{"too many members", `{"x":0` + keys(maxTokens/2-1) + `}`, false},
		{"as many members as may be", `{"x":0` + keys(maxTokens/2-2) + `}`, true},
		{"too many elements", `{"a":[0` + strings.Repeat(`,0`, maxTokens-5) + `]}`, false},
		{"as many elements as may be", `{"a":[0` + strings.Repeat(`,0`, maxTokens-6) + `]}`, true},
		{"too many empty ones", `{"a":[{}` + strings.Repeat(`,[]`, maxTokens/2-2) + `]}`, false},
		{"too long a key", `{"` + strings.Repeat("k", maxKeyLen+1) + `":1}`, false},
		{"as long a key as may be", `{"` + strings.Repeat("k", maxKeyLen) + `":1}`, true},
		{"too long a key within", `{"a":[{"` + strings.Repeat("ş", maxKeyLen/2+1) + `":1}]}`, false},
		{"a key long by its escapes", `{"` + strings.Repeat(`\u015f`, maxKeyLen/2) + `":1}`, true},
		{"a text longer than a key", `{"a":"` + strings.Repeat("v", 4*maxKeyLen) + `"}`, true},
		{"many keys, all different", `{"a":1` + keys(40) + `}`, true},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", false},
		{"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", false},
		{"encoded surrogate", "{\"a\":\"\xed\xa0\x80\"}", false},
		{"invalid UTF-8 in a key", "{\"\xff\":1}", false},
		{"lone high surrogate", `{"a":"\ud800"}`, false},
		{"lone low surrogate", `{"a":"\udc00"}`, false},
		{"high surrogate, then text", `{"a":"\ud800x"}`, false},
		{"two high surrogates", `{"a":"\ud800\ud800"}`, false},
		{"NUL escape", `{"a":"\u0000"}`, false},
		{"NUL in a key", `{"\u0000":1}`, false},
		{"raw NUL", "{\"a\":\"\x00\"}", false},
		{"raw control character", "{\"a\":\"\n\"}", false},
		{"bad escape", `{"a":"\x"}`, false},
		{"short escape", `{"a":"\u12"}`, false},
		{"leading zero", `{"a":01}`, false},
		{"plus sign", `{"a":+1}`, false},
		{"bare point", `{"a":.5}`, false},
		{"point without digits", `{"a":1.}`, false},
		{"exponent without digits", `{"a":1e}`, false},
		{"minus alone", `{"a":-}`, false},
		{"hexadecimal", `{"a":0x1}`, false},
		{"NaN", `{"a":NaN}`, false},
		{"Infinity", `{"a":-Infinity}`, false},
		{"capital literal", `{"a":True}`, false},
		{"cut literal", `{"a":tru}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := checkObject([]byte(c.text))
			storetest.Equal(t, err == nil, c.ok, "checkObject:", err)
			if err != nil && fault.CodeOf(err) != fault.InvalidField {
				t.Errorf("code %s", fault.CodeOf(err))
			}
			if c.ok && !json.Valid([]byte(c.text)) {
				t.Error("encoding/json disagrees")
			}
		})
	}
}

// keys are the members k0 to k<n-1>, each with a comma in front.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":0`, i)
	}
	return b.String()
}

// strictly judges a text by the rules of SEC-40 with encoding/json alone, and returns
// its first token.
func strictly(text []byte) (ok bool, first json.Token) {
	if !json.Valid(text) || !utf8.Valid(text) {
		return false, nil
	}
	for i := 0; i < len(text); i++ { // escapes that encoding/json mends or takes
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] != 'u' {
			continue
		}
		var r, low rune
		fmt.Sscanf(string(text[i+1:i+5]), "%x", &r)
		if i += 4; r == 0 {
			return false, nil
		}
		if !utf16.IsSurrogate(r) {
			continue
		}
		if n, _ := fmt.Sscanf(string(text[i+1:min(i+7, len(text))]), `\u%04x`, &low); n != 1 ||
			utf16.DecodeRune(r, low) == utf8.RuneError {
			return false, nil
		}
		i += 6
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var keys []map[string]bool // of the objects being read; nil for an array
	key := false               // the next token of an object is a key
	for count := 1; ; count++ {
		t, err := d.Token()
		if err != nil {
			return err == io.EOF, first
		}
		if count == 1 {
			first = t
		}
		if count > maxTokens {
			return false, nil
		}
		inObject := len(keys) > 0 && keys[len(keys)-1] != nil
		switch t {
		case json.Delim('{'):
			keys, key = append(keys, map[string]bool{}), true
		case json.Delim('['):
			keys, key = append(keys, nil), false
		case json.Delim('}'), json.Delim(']'):
			keys = keys[:len(keys)-1]
			key = len(keys) > 0 && keys[len(keys)-1] != nil
		default:
			if !inObject {
				break
			}
			if name, is := t.(string); key && is {
				if keys[len(keys)-1][name] || len(name) > maxKeyLen {
					return false, nil
				}
				keys[len(keys)-1][name] = true
			}
			key = !key
		}
		if len(keys) > maxDepth {
			return false, nil
		}
	}
}

// FuzzStrictJSON: exactly what SEC-40 allows is accepted, it reads alike for encoding/json, and the cursor
// finds in it exactly what encoding/json finds.
func FuzzStrictJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1}`, `{"a":"\ud83d\ude00","b":[1,2.5e-3,{"c":null}],"d":true}`, `{"a":1,"a":2}`, `{"a":"\\\"","b":"\\"}`,
		`{"a":"\u0000"}`, "{\"a\":\"\xff\"}", `{"a":[[[[]]]]}`, `{"\u0061":1,"a":2}`, ` { "k" : "v" } `, `{"a":1e400,"b":-0}`,
		`[{"a":"]}"}]`, `"text"`, `null`, `-1.5E+7`, `{"":""}`, `{"a":"é\u00e9"}`,
		`{"a":"\ud800"}`, `{"a":"\ud800\u0061"}`, `{"\\u0000":"\\\\u0000"}`, `{"a":{"a":1},"b":[{"a":1},{"a":"a"}]}`,
		`{} {}`, `{"a":[{}],"a":0}`,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
		`{"` + strings.Repeat("k", maxKeyLen) + `":1}`, `{"` + strings.Repeat("k",
			maxKeyLen+1) + `":1}`, `{"` + strings.Repeat(`\u015f`, maxKeyLen/2) + `":1}`,
		`[0` + strings.Repeat(",0", maxTokens-3) + `]`, `[0` + strings.Repeat(",0", maxTokens-2) + `]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, object := checkValue(text) == nil, checkObject(text) == nil
		if strict, of := strictly(text); value != strict || object != (strict && of == json.Delim('{')) {
			t.Fatalf("%q: accepted as a value %v, as an object %v", text, value, object)
		}
		if !value {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("accepted what encoding/json refuses: %q", text)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		c := newCursor(text)
		got := read(&c)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %#v, encoding/json reads %#v", got, want)
		}
		c = newCursor(text)
		if raw := c.raw(); !reflect.DeepEqual(bytes.TrimSpace(text), raw) {
			t.Fatalf("raw = %q of %q", raw, text)
		}
	})
}

// read decodes a text with the cursor, with the same result as encoding/json.
func read(c *cursor) any {
	switch c.peek() {
	case '{':
		m := map[string]any{}
		for more := c.open(); more; more = c.next() {
			k := string(c.key())
			m[k] = read(c)
		}
		return m
	case '[':
		l := []any{}
		for more := c.open(); more; more = c.next() {
			l = append(l, read(c))
		}
		return l
	case '"':
		return c.str()
	}
	switch raw := string(c.raw()); raw {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	default:
		return json.Number(raw)
	}
}
