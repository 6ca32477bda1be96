package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"castellan/domain/fault"

	"github.com/gofiber/fiber/v2"
)

// answerParts is an encoded success, or a stored answer.
type answerParts struct {
	body        []byte
	headers     []Header
	contentType string // "" for JSON
	pooled      *encoder
}

// encoder is a reusable JSON encoder. Text is not escaped for HTML: an answer is
// never a page, and its headers say so.
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

// maxPooled keeps one huge answer from staying in memory for good.
const maxPooled = 64 << 10

func (e *encoder) release() {
	if e != nil && e.buf.Cap() <= maxPooled {
		e.buf.Reset()
		encoders.Put(e)
	}
}

func (r Reply[T]) reply() (any, []Header, string, []byte) {
	return r.Body, r.Headers, r.ContentType, r.Raw
}

// listing tells where an Out may hold a nil slice that must become [].
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

// encode renders an Out of e. Its bytes may be the encoder's, until released.
func encode(e *Endpoint, out any) (answerParts, error) {
	var a answerParts
	if h, ok := out.(ResponseHeaders); ok {
		a.headers = h.ResponseHeaders()
	}
	if r, ok := out.(interface {
		reply() (any, []Header, string, []byte)
	}); ok {
		body, headers, contentType, raw := r.reply()
		a.headers = headers
		if raw != nil {
			a.body, a.contentType = raw, contentType
			if contentType == "" {
				a.contentType = fiber.MIMEOctetStream
			}
			return a, nil
		}
		out = body
	}
	switch out.(type) {
	case None, nil:
		a.body = emptyObject
		return a, nil
	}
	// A list without elements is [], never null (D-GEN-04).
	switch v := reflect.ValueOf(out); {
	case e.lists == listBare && v.Kind() == reflect.Slice && v.IsNil():
		a.body = emptyList
		return a, nil
	case e.lists == listData && v.Kind() == reflect.Struct && v.Field(0).IsNil():
		a.body = emptyData
		return a, nil
	}
	enc := encoders.Get().(*encoder)
	if err := enc.enc.Encode(out); err != nil {
		return a, fmt.Errorf("encoding a %T: %w", out, err)
	}
	a.body, a.pooled = enc.buf.Bytes()[:enc.buf.Len()-1], enc // without the encoder's line feed
	return a, nil
}

// answerOf is encode for an answer that will be kept: its bytes are its own.
func answerOf(e *Endpoint, out any) (answerParts, error) {
	a, err := encode(e, out)
	if err != nil {
		return a, err
	}
	if a.contentType != "" {
		a.headers = append([]Header{{"Content-Type", a.contentType}}, a.headers...)
	}
	a.body = bytes.Clone(a.body)
	a.pooled.release()
	a.pooled = nil
	return a, nil
}

// send answers with an Out.
func (r *Request) send(out any) error {
	a, err := encode(r.Endpoint, out)
	if err != nil {
		return err
	}
	r.write(fiber.StatusOK, a)
	a.pooled.release()
	return nil
}

func (r *Request) write(status int, a answerParts) {
	r.status = status
	resp := &r.fctx.Response
	resp.SetStatusCode(status)
	if a.contentType == "" {
		a.contentType = typeJSONContent
	}
	resp.Header.SetContentType(a.contentType)
	for _, h := range a.headers {
		resp.Header.Set(h.Name, h.Value)
	}
	resp.SetBody(a.body)
}

// refuse is the only place where an error becomes an answer.
func (r *Request) refuse(err error) {
	f, internal := faultOf(err)
	if internal {
		r.internal = err
	}
	status, contentType, body := r.render(f)
	r.code = f.Code
	r.write(status, answerParts{body: body, contentType: contentType})
	if n := retryAfter(f); n > 0 {
		r.SetHeader("Retry-After", strconv.Itoa(n))
	}
	if f.Nonce != "" {
		r.SetHeader("device-signature-nonce", f.Nonce)
	}
}

// render words a fault in the general shape, or in the endpoint's own once the
// request has got that far.
func (r *Request) render(f *fault.Error) (status int, contentType string, body []byte) {
	if r.owned && r.Endpoint != nil && r.Endpoint.refusal != nil {
		status := StatusOf(f.Code)
		if shape := r.Endpoint.refusal(status, f); shape != nil {
			if body, err := json.Marshal(shape); err == nil {
				return status, typeJSONContent, body
			}
		}
	}
	status, body = problemOf(f, r.Caller.Language, r.Caller.RequestID)
	return status, typeProblem, body
}
