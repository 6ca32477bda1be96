package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
)

// Base64 is a file that a request carries as text (D-GEN-12), in the standard or the URL alphabet (RFC 4648,
// sections 4 and 5). Padding and the prefix data:<mime>;base64, are optional. The media type of the prefix is
// ignored; the handler inspects the bytes. A field of this type is never empty, and an endpoint with one needs a
// body limit:
//
//	rest.Post("/admin/cdn/upload", …).Body(rest.FileBody)
type Base64 []byte

// FileBody is the limit of an endpoint that takes a file, in bytes (D-GEN-12): 15 MiB as base64.
const FileBody = 20 << 20

var errBase64 = errors.New("not base64")

// ParseBase64 decodes a text of Base64 into memory of its own. Both alphabets in one text, white space, wrong padding
// and bits behind the last byte are refused.
func ParseBase64(text []byte) ([]byte, error) {
	if rest, is := bytes.CutPrefix(text, []byte("data:")); is {
		head, body, found := bytes.Cut(rest, []byte(";base64,"))
		if !found || bytes.IndexByte(head, ',') >= 0 {
			return nil, errBase64
		}
		text = body
	}
	if bytes.ContainsAny(text, "\r\n") { // the decoder would pass over them
		return nil, errBase64
	}
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	bare := bytes.TrimRight(text, "=")
	if len(bare) < len(text) && (len(text)%4 != 0 || len(text)-len(bare) > 2) {
		return nil, errBase64
	}
	content := make([]byte, encoding.DecodedLen(len(bare)))
	n, err := encoding.Strict().Decode(content, bare)
	if err != nil {
		return nil, errBase64
	}
	return content[:n], nil
}

// base64Codec decodes in place: an upload is not copied first.
var base64Codec = codec{
	json: func(b *binder, v reflect.Value) {
		if b.c.peek() != '"' {
			b.refuse("must be a string")
			return
		}
		setBase64(b, v, b.c.unquote(b.c.raw()))
	},
	text: func(b *binder, v reflect.Value, s string) { setBase64(b, v, []byte(s)) },
}

func setBase64(b *binder, v reflect.Value, text []byte) {
	content, err := ParseBase64(text)
	switch {
	case err != nil:
		b.fail("must be base64")
	case len(content) == 0:
		b.fail("must not be empty")
	default:
		v.SetBytes(content)
	}
}
