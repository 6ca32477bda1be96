package rest

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// ID is a numeric identifier of a request: a number, or its digits as a record
// may have shown them to the client (D-GEN-07).
type ID int64

// ByID is a request that names one record.
type ByID struct {
	ID ID `json:"id"`
}

// MaxID is the largest identifier that every JSON reader keeps exact.
const MaxID = 1<<53 - 1

// Strings is one string or an array of them.
type Strings []string

// JSON is an object or an array, which a request may also send as a string that
// holds its text. It holds strict JSON.
type JSON []byte

// MarshalJSON writes an empty value as null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

func (j *JSON) UnmarshalJSON(b []byte) error {
	*j = append((*j)[:0], b...)
	return nil
}

// Nullable is a field of an update that null clears (D-GEN-10). It distinguishes not sent, null and a value.
type Nullable[T any] struct {
	Sent, Null bool
	Value      T
}

func (Nullable[T]) isNullable() {}

// Pointer is the value, or nil when null or nothing was sent.
func (n Nullable[T]) Pointer() *T {
	if !n.Sent || n.Null {
		return nil
	}
	return &n.Value
}

// Set sets a field to what was sent, and to the zero value for null.
func (n Nullable[T]) Set(field *T) {
	if n.Sent {
		*field = n.Value
	}
}

// Put sets a field to the sent value, or to nil for null; a field that was not sent stays unchanged.
func (n Nullable[T]) Put(field **T) {
	if n.Sent {
		*field = n.Pointer()
	}
}

func isNullable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.Implements(reflect.TypeFor[interface{ isNullable() }]())
}

// OneOf is an answer of one of three shapes: its Value is an A, a B or a C.
type OneOf[A, B, C any] struct{ Value any }

func (o OneOf[A, B, C]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

func (OneOf[A, B, C]) shapes() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[A](), reflect.TypeFor[B](), reflect.TypeFor[C]()}
}

// Either is an answer of one of two shapes: its Value is an A or a B.
type Either[A, B any] struct{ Value any }

func (e Either[A, B]) MarshalJSON() ([]byte, error) { return json.Marshal(e.Value) }

func (Either[A, B]) shapes() []reflect.Type {
	return []reflect.Type{reflect.TypeFor[A](), reflect.TypeFor[B]()}
}

// Decimal is an exact number in plain notation: no exponent, no plus sign, no
// superfluous zero, no "-0". It is read from a JSON number or a string and
// written as a JSON number (D-GEN-08).
type Decimal string

// Bounds of a Decimal, far beyond any currency: they keep 1e999999999 small.
const (
	maxWhole    = 60
	maxFraction = 60
)

var errDecimal = errors.New("not a decimal number")

// ParseDecimal reads a number in plain or exponent notation, exactly. Its digits may be of any script; blanks around it
// and invisible marks are dropped. A blank between digits is refused, as any other separator of groups is.
func ParseDecimal(s string) (Decimal, error) {
	s = legible.Number(s)
	s, negative := strings.CutPrefix(s, "-")
	mantissa, exponent, hasExp := s, "", false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent, hasExp = s[:i], s[i+1:], true
	}
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if !allDigits(whole) || hasPoint && !allDigits(fraction) || len(s) > 4*(maxWhole+maxFraction) {
		return "", errDecimal
	}
	if hasExp {
		exp, err := strconv.Atoi(exponent)
		if err != nil || exp > maxWhole+maxFraction || exp < -maxWhole-maxFraction {
			return "", errDecimal
		}
		if exp >= 0 {
			fraction += strings.Repeat("0", max(0, exp-len(fraction)))
			whole, fraction = whole+fraction[:exp], fraction[exp:]
		} else {
			whole = strings.Repeat("0", max(0, -exp-len(whole))) + whole
			whole, fraction = whole[:len(whole)+exp], whole[len(whole)+exp:]+fraction
		}
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if len(whole) > maxWhole || len(fraction) > maxFraction {
		return "", errDecimal
	}
	if whole == "" {
		if fraction == "" {
			return "0", nil
		}
		whole = "0"
	}
	if negative {
		whole = "-" + whole
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return Decimal(whole), nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return s != ""
}

// MarshalJSON writes the zero value as 0.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("0"), nil
	}
	c, err := ParseDecimal(string(d))
	return []byte(c), err
}

func (d *Decimal) UnmarshalJSON(b []byte) (err error) {
	s := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	*d, err = ParseDecimal(s)
	return err
}

// Time is an instant or a day. A request may write either as epoch milliseconds,
// a date or ISO 8601, without a zone in UTC; an answer is ISO 8601 in UTC with
// milliseconds (D-GEN-06).
type Time struct {
	time.Time
	Day bool // a date without a time of day was sent; Time is its first instant
}

// At is t for an answer; nil for the zero time, which is then null.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{Time: t}
}

// Filled is s for an answer; nil for "", which is then null.
func Filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Last is the last instant that the value covers when it ends a range: the end
// of the day for a date. Ranges are inclusive at both ends.
func (t Time) Last() time.Time {
	if t.Day {
		return t.Time.AddDate(0, 0, 1).Add(-time.Nanosecond)
	}
	return t.Time
}

// Span checks a range whose ends may be absent. An absent end is the zero time.
//
// Errors: INVALID_FIELD for the field of begin when it lies after end.
func Span(field string, begin, end *Time) (from, to time.Time, err error) {
	if begin != nil {
		from = begin.Time
	}
	if end != nil {
		to = end.Last()
	}
	if begin != nil && end != nil && from.After(to) {
		return from, to, fault.Invalid(field, "must not lie after the end of the range")
	}
	return from, to, nil
}

const isoMillis = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the zero time as null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	b := make([]byte, 0, len(isoMillis)+2)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, isoMillis)
	return append(b, '"'), nil
}

func (t *Time) UnmarshalJSON(b []byte) (err error) {
	s := string(b)
	if s == "null" {
		return nil
	}
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	*t, err = ParseTime(s)
	return err
}

var (
	errTime = errors.New("not a time")
	// First and last millisecond of the years 1 to 9999, which ISO 8601 can write.
	firstMilli = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	lastMilli  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
)

// lastNumber is the largest number of milliseconds that a request may send: the
// last one that a client's Date can hold.
const lastNumber = 8_640_000_000_000_000

var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
}

// ParseTime reads any input form of a Time.
func ParseTime(s string) (Time, error) {
	if n, ok := digits(s); ok {
		if n < firstMilli || n > lastNumber {
			return Time{}, errTime
		}
		return Time{Time: time.UnixMilli(n).UTC()}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return Time{Time: t, Day: true}, nil
	}
	// A plus sign written bare in a query arrives as a space.
	if n := len(s) - len(" 03:00"); n > len(time.DateOnly) && s[n] == ' ' && s[len(time.DateOnly)] == 'T' {
		s = s[:n] + "+" + s[n+1:]
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil && t.UnixMilli() >= firstMilli && t.UnixMilli() <= lastMilli {
			return Time{Time: t.UTC()}, nil
		}
	}
	return Time{}, errTime
}
