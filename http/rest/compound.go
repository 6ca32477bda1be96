package rest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Codecs made of other codecs: pointers, lists, maps, objects.

func (c compiler) pointer(t reflect.Type) (codec, error) {
	elem, err := c.codec(t.Elem())
	if err != nil {
		return codec{}, err
	}
	return codec{
		json: func(b *binder, v reflect.Value) {
			p := reflect.New(t.Elem())
			elem.json(b, p.Elem())
			v.Set(p)
		},
		text: func(b *binder, v reflect.Value, s string) {
			if v.IsNil() { // a repeated key adds to the list behind it
				v.Set(reflect.New(t.Elem()))
			}
			elem.text(b, v.Elem(), s)
		},
	}, nil
}

func (c compiler) nullable(t reflect.Type) (codec, error) {
	value, _ := t.FieldByName("Value")
	elem, err := c.codec(value.Type)
	if err != nil {
		return codec{}, err
	}
	return codec{
		json: func(b *binder, v reflect.Value) {
			v.FieldByName("Sent").SetBool(true)
			if b.c.peek() == 'n' {
				b.c.raw()
				v.FieldByName("Null").SetBool(true)
				return
			}
			elem.json(b, v.FieldByName("Value"))
		},
		text: func(b *binder, v reflect.Value, s string) {
			v.FieldByName("Sent").SetBool(true)
			elem.text(b, v.FieldByName("Value"), s)
		},
	}, nil
}

func (c compiler) slice(t reflect.Type) (codec, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return codec{}, fmt.Errorf("a request cannot hold %v; take a string", t)
	}
	elem, err := c.codec(t.Elem())
	if err != nil {
		return codec{}, err
	}
	return listCodec(t, elem), nil
}

func listCodec(t reflect.Type, elem codec) codec {
	read := func(b *binder, v reflect.Value) {
		if b.c.peek() != '[' {
			b.refuse("must be an array")
			return
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(t, 0, 4))
		}
		for i, more := 0, b.c.open(); more; i, more = i+1, b.c.next() {
			before := len(b.problems)
			if b.c.peek() == 'n' && t.Elem() != typeRaw && t.Elem() != typeAny {
				b.refuse("must not be null")
			} else {
				elem.json(b, appended(v))
			}
			b.within(before, "["+strconv.Itoa(i)+"]")
		}
	}
	return codec{
		json: read,
		text: func(b *binder, v reflect.Value, s string) {
			if strings.HasPrefix(s, "[") {
				b.reread(s, func() { read(b, v) })
				return
			}
			if v.IsNil() {
				v.Set(reflect.MakeSlice(t, 0, 4))
			}
			if s == "" {
				return
			}
			for part := range strings.SplitSeq(s, ",") {
				n, before := v.Len(), len(b.problems)
				elem.text(b, appended(v), strings.TrimSpace(part))
				b.within(before, "["+strconv.Itoa(n)+"]")
			}
		},
	}
}

// appended adds a zero element to a list and returns it.
func appended(list reflect.Value) reflect.Value {
	n := list.Len()
	list.Grow(1)
	list.SetLen(n + 1)
	list.Index(n).SetZero()
	return list.Index(n)
}

// objectCodec reads an object, in a query its text.
func objectCodec(members func(b *binder, v reflect.Value)) codec {
	read := func(b *binder, v reflect.Value) {
		if b.c.peek() != '{' {
			b.refuse("must be an object")
			return
		}
		members(b, v)
	}
	return codec{json: read, text: func(b *binder, v reflect.Value, s string) { b.reread(s, func() { read(b, v) }) }}
}

func (c compiler) mapping(t reflect.Type) (codec, error) {
	if t.Key().Kind() != reflect.String {
		return codec{}, fmt.Errorf("a request cannot hold %v", t)
	}
	elem, err := c.codec(t.Elem())
	if err != nil {
		return codec{}, err
	}
	return objectCodec(func(b *binder, v reflect.Value) {
		v.Set(reflect.MakeMap(t))
		for more := b.c.open(); more; more = b.c.next() {
			key := string(b.c.key())
			before := len(b.problems)
			x := reflect.New(t.Elem()).Elem()
			if b.c.peek() == 'n' && t.Elem() != typeRaw && t.Elem() != typeAny {
				b.refuse("must not be null")
			} else {
				elem.json(b, x)
			}
			b.within(before, key)
			v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), x)
		}
	}), nil
}

func (c compiler) nested(t reflect.Type) (codec, error) {
	p, err := c.object(t)
	if err != nil {
		return codec{}, err
	}
	return objectCodec(func(b *binder, v reflect.Value) {
		var got bitset
		b.members(p, v, &got, nil)
		b.finish(p, v, &got)
	}), nil
}
