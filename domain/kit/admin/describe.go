package admin

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"castellan/domain/kit/legible"
)

// Values describes a record for the audit: each exported field that is not empty. A field with the tag audit:"-" is
// left out: a secret, or a field that no administrator sets.
//
// Slices call Values and Difference instead of writing texts of their own, so that no later field is forgotten. A long
// value is cut and followed by its digest: two values that differ are never described alike.
func Values(record any) string {
	var parts []string
	for _, f := range fieldsOf(reflect.ValueOf(record)) {
		if s := text(f.value); !f.value.IsZero() && s != "[]" {
			parts = append(parts, f.name+" "+bounded(s))
		}
	}
	return strings.Join(parts, ", ")
}

// Unchanged is the Difference of equal records.
const Unchanged = "unchanged"

// Difference describes a change: each field of Values that differs, and of a list the elements that were removed and
// added.
func Difference[T any](before, after T) string {
	var parts []string
	next := fieldsOf(reflect.ValueOf(after))
	for i, f := range fieldsOf(reflect.ValueOf(before)) {
		was, is := text(f.value), text(next[i].value)
		if was == is {
			continue
		}
		change := " " + bounded(was) + " -> " + bounded(is)
		if isList(f.value) {
			removed, added := missing(f.value, next[i].value), missing(next[i].value, f.value)
			if list := element(" -", removed) + element(" +", added); list != "" { // more than their order
				change = list
			}
		}
		parts = append(parts, f.name+change)
	}
	return cmp.Or(strings.Join(parts, ", "), Unchanged)
}

type field struct {
	name  string
	value reflect.Value
}

// fieldsOf returns the fields of a record that the audit describes. Those of embedded structs are fields of the record.
func fieldsOf(record reflect.Value) (all []field) {
	for i := range record.NumField() {
		f := record.Type().Field(i)
		switch {
		case f.Tag.Get("audit") == "-":
		case f.Anonymous:
			all = append(all, fieldsOf(record.Field(i))...)
		case f.IsExported():
			all = append(all, field{nameOf(f), record.Field(i)})
		}
	}
	return all
}

// nameOf returns the name of a field on the wire, if the record has it, else its own in the same spelling.
func nameOf(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	upper := strings.IndexFunc(f.Name, unicode.IsLower)
	if upper < 0 {
		return strings.ToLower(f.Name)
	}
	upper = max(1, upper-1)
	return strings.ToLower(f.Name[:upper]) + strings.ReplaceAll(f.Name[upper:], "ID", "Id")
}

func isList(v reflect.Value) bool {
	return v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8
}

// missing lists the elements of a list that another one lacks.
func missing(list, other reflect.Value) (all []string) {
	var rest []string
	for i := range other.Len() {
		rest = append(rest, text(other.Index(i)))
	}
	for i := range list.Len() {
		e := text(list.Index(i))
		if at := slices.Index(rest, e); at >= 0 {
			rest = slices.Delete(rest, at, at+1)
			continue
		}
		all = append(all, e)
	}
	return all
}

func element(sign string, all []string) string {
	if len(all) == 0 {
		return ""
	}
	return sign + bounded("["+strings.Join(all, ",")+"]")
}

// text returns a value as JSON; of a list without elements, "[]".
func text(v reflect.Value) string {
	if isList(v) && v.Len() == 0 {
		return "[]"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v.Interface()); err != nil {
		return fmt.Sprintf("%+v", v.Interface())
	}
	return strings.TrimSpace(b.String())
}

// maxValueBytes limits a value in an audit row.
const maxValueBytes = 500

// bounded returns a text that can be shown. If it is cut, its length and its digest follow.
func bounded(s string) string {
	if len(s) <= maxValueBytes {
		return legible.Escape(s)
	}
	return legible.Escape(strings.ToValidUTF8(s[:maxValueBytes], "")) +
		fmt.Sprintf("… (%d bytes, SHA-256 %x)", len(s), sha256.Sum256([]byte(s)))
}
