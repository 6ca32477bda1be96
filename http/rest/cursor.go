package rest

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor reads a text that checkObject or checkValue has accepted. It trusts the text: it looks only for the ends of
// values, validates nothing and cannot fail. On any other text it panics or returns nonsense. The results of key,
// quoted and raw alias the text.
type cursor struct {
	text    []byte
	at      int
	escapes bool // somewhere in the text
}

func newCursor(text []byte) cursor {
	return cursor{text: text, escapes: bytes.IndexByte(text, '\\') >= 0}
}

// peek skips white space and returns the first byte of the next token.
func (c *cursor) peek() byte {
	for c.text[c.at] <= ' ' {
		c.at++
	}
	return c.text[c.at]
}

// open enters an object or an array and reports whether it has a first member or element.
func (c *cursor) open() (more bool) {
	c.peek()
	c.at++
	if end := c.peek(); end == '}' || end == ']' {
		c.at++
		return false
	}
	return true
}

// next follows a member or an element: it moves past the comma, or out of the object or array.
func (c *cursor) next() (more bool) {
	more = c.peek() == ','
	c.at++
	return more
}

// key reads a key and the colon behind it.
func (c *cursor) key() []byte {
	k := c.raw()
	c.peek()
	c.at++
	return c.unquote(k)
}

// str reads a string into memory of its own.
func (c *cursor) str() string { return string(c.unquote(c.raw())) }

// unquote returns the value of a string. Without escapes in it, that is a part of raw.
func (c *cursor) unquote(raw []byte) []byte {
	if !c.escapes || bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	s, _ := jsontext.AppendUnquote(nil, raw)
	return s
}

// quoted reads a string and returns the text between its quotes, with its escapes.
func (c *cursor) quoted() []byte {
	s := c.raw()
	return s[1 : len(s)-1]
}

// raw reads any value and returns its text.
func (c *cursor) raw() []byte {
	first := c.peek()
	start := c.at
	switch first {
	case '"':
		c.skipString()
	case '{', '[':
		c.skipNested()
	default:
		c.skipScalar()
	}
	return c.text[start:c.at]
}

// skipString moves past a string: behind the first quote that an even number of backslashes precedes.
func (c *cursor) skipString() {
	first := c.at + 1
	for c.at++; ; c.at++ {
		c.at += bytes.IndexByte(c.text[c.at:], '"')
		backslashes := c.at
		for backslashes > first && c.text[backslashes-1] == '\\' {
			backslashes--
		}
		if (c.at-backslashes)%2 == 0 {
			c.at++
			return
		}
	}
}

// skipNested moves past an object or an array.
func (c *cursor) skipNested() {
	for depth := 0; ; {
		switch c.text[c.at] {
		case '"':
			c.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.at++
		if depth == 0 {
			return
		}
	}
}

// skipScalar moves past a number, true, false or null.
func (c *cursor) skipScalar() {
	for ; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case ' ', '\t', '\r', '\n', ',', '}', ']':
			return
		}
	}
}

// ahead reads the string that comes next without moving past it.
func (c *cursor) ahead() string {
	at := c.at
	defer func() { c.at = at }()
	return c.str()
}
