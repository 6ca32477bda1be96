package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Answer is an encoded success, or a stored answer.
type Answer struct {
	Body        []byte
	Headers     []Header
	ContentType string // "" for JSON
	Status      int    // 0 for 200
	pooled      *encoder
}

// Release returns the memory of the body to the pool; Body must not be used afterwards.
func (a Answer) Release() { a.pooled.release() }

// encoder is a reusable JSON encoder. It does not escape text for HTML: no response is a page,
// and the headers say so.
type encoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.enc = json.NewEncoder(&e.buf)
	e.enc.SetEscapeHTML(false)
	return e
}}

// maxPooled is the largest buffer, in bytes, that returns to the pool.
const maxPooled = 64 << 10

func (e *encoder) release() {
	if e != nil && e.buf.Cap() <= maxPooled {
		e.buf.Reset()
		encoders.Put(e)
	}
}

func (r Reply[T]) reply() (body any, a Answer) {
	return r.Body, Answer{Body: r.Raw, Headers: r.Headers, ContentType: r.ContentType, Status: r.Status}
}

// listing is the place in an Out where a nil slice must become [].
type listing byte

const (
	listNone listing = iota
	listBare
	listData
)

// listingOf looks through Reply and Data.
func listingOf(out reflect.Type) listing {
	if out.Kind() == reflect.Slice && out != typeRaw && out != typeJSON {
		return listBare
	}
	if out.Kind() == reflect.Struct && out.PkgPath() == kitPath {
		switch name, _, _ := strings.Cut(out.Name(), "["); name {
		case "Reply":
			return listingOf(out.Field(0).Type)
		case "Data":
			if listingOf(out.Field(0).Type) == listBare {
				return listData
			}
		}
	}
	return listNone
}

var kitPath = reflect.TypeFor[None]().PkgPath()

var emptyObject, emptyList, emptyData = []byte("{}"), []byte("[]"), []byte(`{"data":[]}`)

// Encode renders an Out of e. Its bytes can belong to the encoder until Release.
func (e *Endpoint) Encode(out any) (Answer, error) {
	var a Answer
	if h, ok := out.(ResponseHeaders); ok {
		a.Headers = h.ResponseHeaders()
	}
	if r, ok := out.(interface{ reply() (any, Answer) }); ok {
		if out, a = r.reply(); a.Body != nil {
			a.ContentType = cmp.Or(a.ContentType, "application/octet-stream")
			return a, nil
		}
		a.ContentType = ""
	}
	switch out.(type) {
	case None, nil:
		a.Body = emptyObject
		return a, nil
	}
	// A list without elements is [], never null (D-GEN-04).
	switch v := reflect.ValueOf(out); {
	case e.lists == listBare && v.Kind() == reflect.Slice && v.IsNil():
		a.Body = emptyList
		return a, nil
	case e.lists == listData && v.Kind() == reflect.Struct && v.Field(0).IsNil():
		a.Body = emptyData
		return a, nil
	}
	enc := encoders.Get().(*encoder)
	if err := enc.enc.Encode(out); err != nil {
		return a, fmt.Errorf("encoding a %T: %w", out, err)
	}
	a.Body, a.pooled = enc.buf.Bytes()[:enc.buf.Len()-1], enc // without the encoder's line feed
	return a, nil
}

// EncodeToKeep is Encode for a stored answer: the answer owns its bytes, and its media type is
// one of its headers.
func (e *Endpoint) EncodeToKeep(out any) (Answer, error) {
	a, err := e.Encode(out)
	if err != nil {
		return a, err
	}
	if a.ContentType != "" {
		a.Headers = append([]Header{{"Content-Type", a.ContentType}}, a.Headers...)
	}
	a.Body = bytes.Clone(a.Body)
	a.pooled.release()
	a.pooled = nil
	return a, nil
}
