package rest

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor reads a text that was checked: it cannot fail. Its methods name what the
// text has next; the results of key and raw alias it.
type cursor struct {
	d    *reader
	text []byte
}

// checked spares a text that was checked the second search for keys that stand twice.
var checked = jsontext.AllowDuplicateNames(true)

// newCursor begins a text; done gives the memory back.
func newCursor(text []byte) cursor {
	d := readers.Get().(*reader)
	d.reset(text, checked)
	return cursor{d, text}
}

func (c *cursor) done() { c.d.release() }

// peek is the byte that the next token starts with; the digit 0 stands for every number.
func (c *cursor) peek() byte { return byte(c.d.PeekKind()) }

// open enters an object or an array and tells whether it has anything in it.
func (c *cursor) open() (more bool) {
	c.d.ReadToken()
	return c.next()
}

// next tells whether another member or element follows, and leaves the whole where
// none does.
func (c *cursor) next() (more bool) {
	if k := c.d.PeekKind(); k != '}' && k != ']' {
		return true
	}
	c.d.ReadToken()
	return false
}

// key reads a key.
func (c *cursor) key() []byte {
	k := c.raw()
	if bytes.IndexByte(k, '\\') < 0 {
		return k[1 : len(k)-1]
	}
	k, _ = jsontext.AppendUnquote(nil, k)
	return k
}

// str reads a string into memory of its own.
func (c *cursor) str() string {
	s := c.raw()
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s[1 : len(s)-1])
	}
	s, _ = jsontext.AppendUnquote(nil, s)
	return string(s)
}

// quoted reads a string and returns what stands between its quotes.
func (c *cursor) quoted() []byte {
	s := c.raw()
	return s[1 : len(s)-1]
}

// raw reads any value and returns its text.
func (c *cursor) raw() []byte {
	v, _ := c.d.ReadValue()
	return v
}

// ahead is the string that comes next, without reading past it.
func (c *cursor) ahead() string {
	next := newCursor(bytes.TrimLeft(c.text[c.d.InputOffset():], " \t\r\n:,"))
	defer next.done()
	return next.str()
}
