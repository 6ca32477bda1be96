package rest

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// cursor reads a text that the checker has accepted: it looks only at what it
// needs to find its way and cannot fail.
type cursor struct {
	b []byte
	i int
}

// peek skips white space and returns the byte that the next token starts with.
func (c *cursor) peek() byte {
	for c.b[c.i] <= ' ' {
		c.i++
	}
	return c.b[c.i]
}

// open enters an object or an array and tells whether it has anything in it.
func (c *cursor) open() (more bool) {
	c.peek()
	c.i++
	if ch := c.peek(); ch == '}' || ch == ']' {
		c.i++
		return false
	}
	return true
}

// next moves past the comma after a member or element, or out of the whole.
func (c *cursor) next() (more bool) {
	more = c.peek() == ','
	c.i++
	return more
}

// key reads a key and its colon. The result aliases the text.
func (c *cursor) key() []byte {
	k := c.quoted()
	if bytes.IndexByte(k, '\\') >= 0 {
		k = unescape(nil, k)
	}
	c.peek()
	c.i++
	return k
}

// str reads a string into memory of its own.
func (c *cursor) str() string {
	raw := c.quoted()
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	return string(unescape(make([]byte, 0, len(raw)), raw))
}

// quoted reads a string and returns what stands between its quotes.
func (c *cursor) quoted() []byte {
	c.peek()
	start := c.i + 1
	c.skipString()
	return c.b[start : c.i-1]
}

func (c *cursor) skipString() {
	for c.i++; ; {
		n := bytes.IndexByte(c.b[c.i:], '"')
		end := c.i + n
		back := end
		for c.b[back-1] == '\\' {
			back--
		}
		// An odd number of backslashes escapes the quote. The count may run over
		// the start of the search but never over the opening quote.
		c.i = end + 1
		if (end-back)%2 == 0 {
			return
		}
	}
}

// raw reads any value and returns its text, which aliases the whole.
func (c *cursor) raw() []byte {
	ch := c.peek()
	start := c.i
	switch ch {
	case '"':
		c.skipString()
	case '{', '[':
		for depth := 0; ; {
			switch c.b[c.i] {
			case '"':
				c.skipString()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					c.i++
					return c.b[start:c.i]
				}
			}
			c.i++
		}
	default:
		for c.i < len(c.b) && scalar[c.b[c.i]] {
			c.i++
		}
	}
	return c.b[start:c.i]
}

// scalar are the bytes of numbers, true, false and null.
var scalar = func() (t [256]bool) {
	for _, ch := range "0123456789+-.eEtruefalsn" {
		t[ch] = true
	}
	return
}()

// unescape appends the meaning of what stands between the quotes of a string.
func unescape(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		size := 2
		switch raw[1] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw)
			size = 6
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[6:])
				r = utf16.DecodeRune(r, low)
				size = 12
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, raw[1])
		}
		raw = raw[size:]
	}
	return dst
}
