package rest

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"castellan/domain/kit/fault"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a request's JSON (SEC-40). Depth counts objects and arrays together; tokens are
// counted as encoding/json does: braces, brackets, keys and scalars. They bound the memory
// that the search for duplicate keys needs.
const (
	maxDepth  = 32
	maxTokens = 12_000
	maxKeyLen = 128 // bytes, without escapes
)

// A strict text is checked once, in one pass, and read afterwards by a cursor that can
// therefore trust it. Strict means the defaults of jsontext: RFC 8259 with valid UTF-8, no
// lone surrogate and no duplicate key in an object, however it is escaped. In addition,
// nothing follows the value, there is no NUL character, and the bounds above hold.
// encoding/json, which accepts much more, reads every accepted text alike (see
// FuzzStrictJSON). docs/decisions/0003-the-json-reader.md explains the choice of jsontext.

// checkObject refuses a body that is not one strict JSON object.
func checkObject(b []byte) error { return check(b, true) }

// checkValue refuses a text that is not one strict JSON value.
func checkValue(b []byte) error { return check(b, false) }

// malformed is the fault of an unreadable text: it names a position and never quotes the text.
func malformed(at int64, reason string) error {
	return fault.New(fault.InvalidField, "malformed JSON at byte %d: %s", at, reason)
}

// withinBounds reports whether a text, valid or not, is too small to break a bound above. Such a text needs no count of
// its tokens. It has no escape, so it has no NUL character in a string either.
func withinBounds(b []byte) bool {
	if len(b) > maxTokens || bytes.IndexByte(b, '\\') >= 0 ||
		bytes.Count(b, []byte("{"))+bytes.Count(b, []byte("[")) > maxDepth {
		return false
	}
	for len(b) > maxKeyLen { // a string longer than a key may be one
		quote := bytes.IndexByte(b, '"')
		if quote < 0 || quote > maxKeyLen {
			return false
		}
		b = b[quote+1:]
	}
	return true
}

var nulEscape = []byte(`\u0000`)

// check accepts most texts by one call. The loop behind it counts tokens, and finds the reason of a refusal.
func check(b []byte, object bool) error {
	if v := jsontext.Value(b); withinBounds(b) && (!object || v.Kind() == '{') && v.IsValid() {
		return nil
	}
	d := readers.Get().(*reader)
	defer d.release()
	d.reset(b)
	if object && d.PeekKind() != '{' {
		return malformed(int64(len(b)-len(bytes.TrimLeft(b, " \t\r\n"))), "expected an object")
	}
	mayHoldNUL := bytes.Contains(b, nulEscape)
	for count := 1; ; count++ {
		at := d.InputOffset()
		t, err := d.ReadToken()
		if err != nil {
			return syntax(b, err, at)
		}
		depth := d.StackDepth()
		switch kind := t.Kind(); {
		case count > maxTokens:
			return malformed(at, "too many tokens")
		case depth > maxDepth:
			return malformed(at, "nested too deeply")
		case kind == '"' && mayHoldNUL && strings.IndexByte(t.String(), 0) >= 0:
			if object && !isKey(d) { // it can be read, so its field can be named
				return fault.Invalid(fieldAt(d.StackPointer()), "is not valid text")
			}
			return malformed(at, "NUL character in a string")
		case kind == '"' && d.InputOffset()-at > maxKeyLen && isKey(d) && len(t.String()) > maxKeyLen:
			return malformed(at, "a key is too long")
		}
		if depth == 0 {
			break
		}
	}
	at := d.InputOffset()
	if _, err := d.ReadToken(); err != io.EOF {
		return malformed(at, "unexpected text after the value")
	}
	return nil
}

// fieldAt writes the place of a value in the notation of refusals: methods[0].name.
func fieldAt(p jsontext.Pointer) string {
	var name strings.Builder
	for token := range p.Tokens() {
		_, err := strconv.Atoi(token)
		switch {
		case err == nil:
			name.WriteString("[" + token + "]")
		case name.Len() > 0:
			name.WriteString("." + token)
		default:
			name.WriteString(token)
		}
	}
	if name.Len() > maxKeyLen { // keys that the client chose
		return ""
	}
	return name.String()
}

// isKey reports whether the token that was read last is a key.
func isKey(d *reader) bool {
	kind, n := d.StackIndex(d.StackDepth())
	return kind == '{' && n%2 == 1
}

// syntax is the fault of a text that jsontext refused.
func syntax(b []byte, err error, at int64) error {
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		at = s.ByteOffset
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed(at, "unexpected end")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return malformed(at, "duplicate key")
	case at < int64(len(b)) && b[at] < ' ':
		return malformed(at, "control character in a string")
	case at < int64(len(b)) && b[at] >= utf8.RuneSelf && !utf8.Valid(b):
		return malformed(at, "invalid UTF-8")
	}
	return malformed(at, "unexpected character")
}

// reader is a decoder over a text in memory, used again for the next one.
type reader struct {
	*jsontext.Decoder
	text bytes.Buffer
}

var readers = sync.Pool{New: func() any { return &reader{Decoder: jsontext.NewDecoder(new(bytes.Buffer))} }}

func (r *reader) reset(b []byte) {
	r.text = *bytes.NewBuffer(b)
	r.Reset(&r.text)
}

func (r *reader) release() {
	r.reset(nil)
	readers.Put(r)
}
