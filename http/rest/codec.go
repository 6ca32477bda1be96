package rest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"castellan/domain/kit/amount"
)

// codec reads one value: json from the binder's cursor, text from a query string. Both report
// problems through b.fail, and json always moves past the value. Texts that reach text are
// valid UTF-8 without NUL.
type codec struct {
	json func(b *binder, v reflect.Value)
	text func(b *binder, v reflect.Value, s string)
}

var (
	typeID      = reflect.TypeFor[ID]()
	typeDecimal = reflect.TypeFor[Decimal]()
	typeAmount  = reflect.TypeFor[amount.Amount]()
	typeSum     = reflect.TypeFor[amount.Sum]() // only in answers
	typeTime    = reflect.TypeFor[Time]()
	typeJSON    = reflect.TypeFor[JSON]()
	typeRaw     = reflect.TypeFor[json.RawMessage]()
	typeAny     = reflect.TypeFor[any]()
	typeStrings = reflect.TypeFor[Strings]()
	typeBase64  = reflect.TypeFor[Base64]()
	typeStrict  = reflect.TypeFor[Strict]()

	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// codec compiles one type. Floating point is refused on purpose: money is an
// amount.Amount, another number with decimals a Decimal (D-GEN-08), everything
// else an integer.
func (c compiler) codec(t reflect.Type) (codec, error) {
	switch t {
	case typeID:
		return intCodec(0, MaxID, "must be an id: a whole number or its digits"), nil
	case typeDecimal:
		return decimalCodec(func(v reflect.Value, d Decimal) error { v.SetString(string(d)); return nil }), nil
	case typeAmount:
		return decimalCodec(setAmount), nil
	case typeTime:
		return timeCodec, nil
	case typeJSON:
		return jsonTextCodec, nil
	case typeRaw, typeAny:
		return anyCodec, nil
	case typeStrings:
		return stringsCodec, nil
	case typeBase64:
		return base64Codec, nil
	}
	if isNullable(t) {
		return c.nullable(t)
	}
	switch p := reflect.PointerTo(t); {
	case t.Kind() == reflect.Pointer:
		return c.pointer(t)
	case p.Implements(jsonUnmarshaler):
		return customCodec, nil
	case p.Implements(textUnmarshaler):
		return codec{}, fmt.Errorf("a request cannot hold a %v, which reads itself from text", t)
	}
	switch t.Kind() {
	case reflect.String:
		return stringCodec, nil
	case reflect.Bool:
		return boolCodec, nil
	case reflect.Int, reflect.Int64:
		return intCodec(math.MinInt64, math.MaxInt64, wantInt), nil
	case reflect.Slice:
		return c.slice(t)
	case reflect.Map:
		return c.mapping(t)
	case reflect.Struct:
		return c.nested(t)
	}
	return codec{}, fmt.Errorf("a request cannot hold a %v", t)
}

const wantInt = "must be a whole number"

var stringCodec = codec{
	json: func(b *binder, v reflect.Value) {
		if b.c.peek() != '"' {
			b.refuse("must be a string")
			return
		}
		v.SetString(b.c.str())
	},
	text: func(b *binder, v reflect.Value, s string) { v.SetString(s) },
}

var boolCodec = codec{
	json: func(b *binder, v reflect.Value) {
		switch b.c.peek() {
		case 't':
			v.SetBool(true)
		case 'f':
			v.SetBool(false)
		default:
			b.fail("must be true or false")
		}
		b.c.raw()
	},
	text: func(b *binder, v reflect.Value, s string) {
		switch s {
		case "true", "1":
			v.SetBool(true)
		case "false", "0":
			v.SetBool(false)
		default:
			b.fail("must be true or false")
		}
	},
}

// intCodec reads whole numbers in [min, max], from a number or from its digits
// in a string (D-GEN-10).
func intCodec(min, max int64, want string) codec {
	set := func(b *binder, v reflect.Value, n int64, ok bool) {
		if !ok || n < min || n > max {
			b.fail(want)
			return
		}
		v.SetInt(n)
	}
	return codec{
		json: func(b *binder, v reflect.Value) {
			n, ok := b.wholeNumber()
			set(b, v, n, ok)
		},
		text: func(b *binder, v reflect.Value, s string) {
			n, ok := digits(s)
			set(b, v, n, ok)
		},
	}
}

// wholeNumber reads an integer written as a JSON number in any notation, or as a string of
// digits (D-GEN-10). Languages with one number type send 5.0 and 1e9.
func (b *binder) wholeNumber() (int64, bool) {
	switch ch := b.c.peek(); {
	case ch == '"':
		return digits(string(b.c.quoted()))
	case ch == '-' || ch-'0' <= 9:
		s := string(b.c.raw())
		if n, ok := digits(s); ok {
			return n, true
		}
		d, err := ParseDecimal(s)
		if err != nil {
			return 0, false
		}
		return digits(string(d))
	}
	b.c.raw()
	return 0, false
}

// digits is strconv.ParseInt without the plus sign.
func digits(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && s[0] != '+'
}

// decimalCodec reads a number with decimals from the text of a JSON number, or
// from a string, and gives it to set.
func decimalCodec(set func(v reflect.Value, d Decimal) error) codec {
	text := func(b *binder, v reflect.Value, s string) {
		d, err := ParseDecimal(s)
		if err != nil {
			err = amount.ErrNumber
		} else {
			err = set(v, d)
		}
		if err != nil {
			b.fail(err.Error())
		}
	}
	return codec{
		json: func(b *binder, v reflect.Value) {
			ch := b.c.peek()
			if ch == '"' {
				text(b, v, b.c.str())
				return
			}
			raw := b.c.raw()
			if ch != '-' && ch-'0' > 9 {
				raw = nil
			}
			text(b, v, string(raw))
		},
		text: text,
	}
}

func setAmount(v reflect.Value, d Decimal) error {
	a, err := amount.Parse(string(d))
	v.Set(reflect.ValueOf(a))
	return err
}

var timeCodec = codec{
	json: func(b *binder, v reflect.Value) {
		if b.c.peek() == '"' {
			setTime(b, v, b.c.str())
			return
		}
		n, ok := b.wholeNumber()
		if !ok {
			b.fail(wantTime)
			return
		}
		setTime(b, v, strconv.FormatInt(n, 10))
	},
	text: setTime,
}

const wantTime = "must be epoch milliseconds, a date (YYYY-MM-DD) or an ISO 8601 time"

func setTime(b *binder, v reflect.Value, s string) {
	t, err := ParseTime(s)
	if err != nil {
		b.fail(wantTime)
		return
	}
	v.Set(reflect.ValueOf(t))
}

// anyCodec keeps any value: json.RawMessage its text, any the value that
// encoding/json makes of it, with exact numbers.
var anyCodec = codec{
	json: func(b *binder, v reflect.Value) { setRaw(v, b.c.raw()) },
	text: func(b *binder, v reflect.Value, s string) {
		raw := []byte(s)
		if checkValue(raw) != nil {
			raw, _ = json.Marshal(s)
		}
		setRaw(v, raw)
	},
}

func setRaw(v reflect.Value, raw []byte) {
	if v.Type() == typeRaw {
		v.SetBytes([]byte(string(raw)))
		return
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var x any
	if d.Decode(&x) == nil && x != nil { // cannot fail: the text was checked
		v.Set(reflect.ValueOf(x))
	}
}

// jsonTextCodec reads an object or an array, given as such or as a string that
// holds its text.
var jsonTextCodec = codec{
	json: func(b *binder, v reflect.Value) {
		switch b.c.peek() {
		case '"':
			setJSON(b, v, b.c.str())
		case '{', '[':
			v.SetBytes([]byte(string(b.c.raw())))
		default:
			b.refuse(wantJSON)
		}
	},
	text: setJSON,
}

const wantJSON = "must be a JSON object or array"

func setJSON(b *binder, v reflect.Value, s string) {
	raw := []byte(strings.TrimSpace(s))
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || checkValue(raw) != nil {
		b.fail(wantJSON)
		return
	}
	v.SetBytes(raw)
}

// stringsCodec reads one string or an array of them.
var stringsCodec = func() codec {
	list := listCodec(reflect.TypeFor[Strings](), stringCodec)
	return codec{
		json: func(b *binder, v reflect.Value) {
			if b.c.peek() == '"' {
				v.Set(reflect.ValueOf(Strings{b.c.str()}))
				return
			}
			list.json(b, v)
		},
		text: list.text,
	}
}()

// customCodec serves types that read themselves. A query gives them its text as
// a JSON string, or as it is when it is an object or an array.
var customCodec = codec{
	json: func(b *binder, v reflect.Value) { unmarshal(b, v, b.c.raw()) },
	text: func(b *binder, v reflect.Value, s string) {
		raw := []byte(s)
		if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || checkValue(raw) != nil {
			raw, _ = json.Marshal(s)
		}
		unmarshal(b, v, raw)
	},
}

func unmarshal(b *binder, v reflect.Value, raw []byte) {
	if v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON([]byte(string(raw))) != nil {
		b.fail("is not valid")
	}
}
