package rest

import (
	"bytes"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"castellan/domain/fault"
)

// Bounds of a request's JSON (SEC-40). Depth counts objects and arrays together;
// tokens are counted as encoding/json does: braces, brackets, keys and scalars.
// They keep the search for duplicate keys from being the cheapest way to exhaust
// memory.
const (
	maxDepth  = 32
	maxTokens = 10_000
	maxKeyLen = 128 // bytes, without escapes
)

// A strict text is checked once, in one pass, and read afterwards by a cursor
// that can therefore trust it. Strict means RFC 8259 plus: nothing after the
// value, valid UTF-8, no lone surrogate, no NUL character, no key twice in one
// object however it is escaped, and the bounds above. Everything accepted here is read
// alike by encoding/json (see FuzzStrictJSON), which accepts much more.

// checkObject refuses a body that is not one strict JSON object.
func checkObject(b []byte) error {
	return check(b, true)
}

// checkValue refuses a text that is not one strict JSON value.
func checkValue(b []byte) error {
	return check(b, false)
}

func check(b []byte, object bool) error {
	c := checkers.Get().(*checker)
	c.b = b
	ok := c.whole(object)
	at, why := c.i, c.why
	clear(c.keys[:cap(c.keys)]) // they alias b
	*c = checker{keys: c.keys[:0]}
	checkers.Put(c)
	if !ok {
		return malformed(at, why)
	}
	return nil
}

var checkers = sync.Pool{New: func() any { return &checker{keys: make([][]byte, 0, 32)} }}

// malformed is the fault of a text that cannot be read at all: it names a
// position and never quotes the text.
func malformed(at int, reason string) error {
	return fault.New(fault.InvalidField, "malformed JSON at byte %d: %s", at, reason)
}

type checker struct {
	b     []byte
	i     int
	depth int
	count int      // of tokens
	keys  [][]byte // of the objects being read, innermost last
	why   string   // of the first defect
}

func (c *checker) whole(object bool) bool {
	c.space()
	if object && (c.i >= len(c.b) || c.b[c.i] != '{') {
		return c.fail("expected an object")
	}
	if !c.value() {
		return false
	}
	if c.space(); c.i < len(c.b) {
		return c.fail("unexpected text after the value")
	}
	return true
}

func (c *checker) fail(why string) bool {
	c.why = why
	return false
}

func (c *checker) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

func (c *checker) value() bool {
	if c.i >= len(c.b) {
		return c.fail("unexpected end")
	}
	if !c.token() {
		return false
	}
	switch c.b[c.i] {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		_, ok := c.str()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

func (c *checker) token() bool {
	if c.count++; c.count > maxTokens {
		return c.fail("too many tokens")
	}
	return true
}

func (c *checker) word(w string) bool {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		return c.fail("unexpected character")
	}
	c.i += len(w)
	return true
}

func (c *checker) enter() bool {
	c.i++
	if c.depth++; c.depth > maxDepth {
		return c.fail("nested too deeply")
	}
	c.space()
	return true
}

// leave ends an object or an array.
func (c *checker) leave() bool {
	c.i++
	c.depth--
	return c.token()
}

func (c *checker) array() bool {
	if !c.enter() {
		return false
	}
	if c.i < len(c.b) && c.b[c.i] == ']' {
		return c.leave()
	}
	for {
		if !c.value() {
			return false
		}
		c.space()
		if c.i >= len(c.b) {
			return c.fail("unexpected end")
		}
		switch c.b[c.i] {
		case ',':
			c.i++
			c.space()
		case ']':
			return c.leave()
		default:
			return c.fail("expected a comma or the end of the array")
		}
	}
}

func (c *checker) object() bool {
	if !c.enter() {
		return false
	}
	first := len(c.keys)
	var many map[string]struct{} // the keys, once they are too many to compare one by one
	for n := 0; ; n++ {
		if c.i >= len(c.b) {
			return c.fail("unexpected end")
		}
		if n == 0 && c.b[c.i] == '}' {
			break
		}
		if c.b[c.i] != '"' {
			return c.fail("expected a key")
		}
		at := c.i
		key, ok := c.str()
		if !ok || !c.token() {
			return false
		}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unescape(nil, key)
		}
		if len(key) > maxKeyLen {
			c.i = at
			return c.fail("a key is too long")
		}
		if many, ok = c.add(key, first, many); !ok {
			c.i = at
			return c.fail("duplicate key")
		}
		c.space()
		if c.i >= len(c.b) || c.b[c.i] != ':' {
			return c.fail("expected a colon")
		}
		c.i++
		c.space()
		if !c.value() {
			return false
		}
		c.space()
		if c.i < len(c.b) && c.b[c.i] == ',' {
			c.i++
			c.space()
			continue
		}
		if c.i < len(c.b) && c.b[c.i] == '}' {
			break
		}
		return c.fail("expected a comma or the end of the object")
	}
	c.keys = c.keys[:first]
	return c.leave()
}

// add notes a key of the object whose keys start at first; false when it was
// there already.
func (c *checker) add(key []byte, first int, many map[string]struct{}) (map[string]struct{}, bool) {
	if many == nil {
		for _, k := range c.keys[first:] {
			if bytes.Equal(k, key) {
				return nil, false
			}
		}
		c.keys = append(c.keys, key)
		if len(c.keys)-first <= 16 {
			return nil, true
		}
		many = make(map[string]struct{}, 64)
		for _, k := range c.keys[first:] {
			many[string(k)] = struct{}{}
		}
		return many, true
	}
	if _, twice := many[string(key)]; twice {
		return many, false
	}
	many[string(key)] = struct{}{}
	return many, true
}

// plain are the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for i := 0x20; i < 0x80; i++ {
		t[i] = i != '"' && i != '\\'
	}
	return
}()

// str reads a string and returns what stands between its quotes.
func (c *checker) str() ([]byte, bool) {
	b, i := c.b, c.i+1
	start := i
	for i < len(b) {
		switch ch := b[i]; {
		case plain[ch]:
			i++
		case ch == '"':
			c.i = i + 1
			return b[start:i], true
		case ch == '\\':
			n, why := escape(b[i:])
			if why != "" {
				c.i = i
				return nil, c.fail(why)
			}
			i += n
		case ch < 0x20:
			c.i = i
			return nil, c.fail("control character in a string")
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				c.i = i
				return nil, c.fail("invalid UTF-8")
			}
			i += n
		}
	}
	c.i = i
	return nil, c.fail("unexpected end")
}

// escape returns the length of the escape sequence that b starts with, a
// surrogate pair counting as one.
func escape(b []byte) (n int, why string) {
	if len(b) < 2 {
		return 0, "unexpected end"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		r, ok := hex4(b)
		switch {
		case !ok:
			return 0, "bad escape"
		case r == 0:
			return 0, "NUL character in a string"
		case !utf16.IsSurrogate(r):
			return 6, ""
		}
		if low, ok := hex4(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, ""
		}
		return 0, "lone surrogate"
	}
	return 0, "bad escape"
}

// hex4 reads \uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, ch := range b[2:6] {
		switch {
		case ch >= '0' && ch <= '9':
			ch -= '0'
		case ch >= 'a' && ch <= 'f':
			ch -= 'a' - 10
		case ch >= 'A' && ch <= 'F':
			ch -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(ch)
	}
	return r, true
}

func (c *checker) digits() bool {
	start := c.i
	for c.i < len(c.b) && c.b[c.i]-'0' <= 9 {
		c.i++
	}
	return c.i > start
}

func (c *checker) number() bool {
	const bad = "unexpected character"
	if c.b[c.i] == '-' {
		c.i++
	}
	if c.i < len(c.b) && c.b[c.i] == '0' {
		c.i++
	} else if !c.digits() {
		return c.fail(bad)
	}
	if c.i < len(c.b) && c.b[c.i] == '.' {
		c.i++
		if !c.digits() {
			return c.fail(bad)
		}
	}
	if c.i < len(c.b) && c.b[c.i]|0x20 == 'e' {
		c.i++
		if c.i < len(c.b) && (c.b[c.i] == '+' || c.b[c.i] == '-') {
			c.i++
		}
		if !c.digits() {
			return c.fail(bad)
		}
	}
	return true
}
