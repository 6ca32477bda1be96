// Package pack writes values one after the other, without names. It is the encoding of data that is sealed or stored
// with every login, for which JSON costs ten times as much. A string is its length and its bytes, an integer a varint
// as in encoding/binary.
//
// New fields are appended: a reader of older data finds the new fields empty, and a reader of newer data ignores them.
package pack

import (
	"encoding/binary"
	"errors"
)

// String appends s.
func String[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Strings appends a list.
func Strings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = String(b, s)
	}
	return b
}

func Int(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

// Bool appends v.
func Bool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// Reader reads values in the order in which they were appended. After the last value every further value is empty.
type Reader struct {
	rest  string
	short bool // a value after the last one was read
	err   error
}

// Read returns a reader of data. The strings that it returns share the memory of data.
func Read(data string) *Reader { return &Reader{rest: data} }

var errTorn = errors.New("pack: a value goes beyond the end")

// Err returns the error of an incomplete value.
func (r *Reader) Err() error { return r.err }

// Exact reports whether the fields were read exactly to the end of the input.
func (r *Reader) Exact() bool { return r.rest == "" && !r.short && r.err == nil }

// More reports whether unread values remain.
func (r *Reader) More() bool { return r.rest != "" && r.err == nil }

func (r *Reader) String() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail()
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// Strings reads a list; an empty one is not nil.
func (r *Reader) Strings() []string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) { // each string takes at least one byte
		r.fail()
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.String()
	}
	return list
}

// Int reads an integer.
func (r *Reader) Int() int64 {
	u := r.uvarint()
	n := int64(u >> 1)
	if u&1 != 0 {
		n = ^n
	}
	return n
}

// Bool reads a truth value.
func (r *Reader) Bool() bool { return r.uvarint() != 0 }

// uvarint is binary.Uvarint for a string; 0 at the end.
func (r *Reader) uvarint() (n uint64) {
	if r.rest == "" {
		r.short = true
		return 0
	}
	for i := range min(len(r.rest), binary.MaxVarintLen64) {
		b := r.rest[i]
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break // more than 64 bits
			}
			r.rest = r.rest[i+1:]
			return n | uint64(b)<<(7*i)
		}
		n |= uint64(b&0x7f) << (7 * i)
	}
	r.fail()
	return 0
}

func (r *Reader) fail() { r.rest, r.err = "", errTorn }
