package intake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxRecord is the longest line, or the longest user of a JSON document, in bytes.
const maxRecord = 1 << 20

// maxDepth bounds the nesting of a JSON document.
const maxDepth = 64

// errLong reports a user beyond maxRecord. Its bytes were read and dropped.
var errLong = errors.New("is longer than 1 MiB")

// scanner reads the elements of an array in a JSON document, without holding more than one of them. It divides the
// bytes; encoding/json judges an element.
type scanner struct {
	in  *bufio.Reader
	buf []byte // of the value that is kept
}

func newScanner(r io.Reader) *scanner { return &scanner{in: bufio.NewReaderSize(r, 1<<16)} }

var errSyntax = errors.New("the file is not the JSON document of this format")

// space returns the next byte that is no white space, without reading it.
func (s *scanner) space() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, end(err)
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c, s.in.UnreadByte()
		}
	}
}

// end turns the end of a file inside a document into a fault.
func end(err error) error {
	if errors.Is(err, io.EOF) {
		return errSyntax
	}
	return err
}

// expect reads a byte.
func (s *scanner) expect(want byte) error {
	c, err := s.space()
	if err == nil && c != want {
		err = errSyntax
	}
	if err == nil {
		_, err = s.in.ReadByte()
	}
	return err
}

// toArray moves into the document: to the array itself, or to the array under a key of the object. found is false for
// an object without the key; the document is read then.
func (s *scanner) toArray(key string) (found bool, err error) {
	if key == "" {
		return true, s.expect('[')
	}
	if err := s.expect('{'); err != nil {
		return false, err
	}
	for first := true; ; first = false {
		c, err := s.space()
		if err != nil {
			return false, err
		}
		if c == '}' {
			_, err = s.in.ReadByte()
			return false, err
		}
		if !first {
			if err := s.expect(','); err != nil {
				return false, err
			}
		}
		if c, err = s.space(); err == nil && c != '"' {
			err = errSyntax
		}
		if err != nil {
			return false, err
		}
		name, err := s.value(true)
		if err != nil {
			return false, err
		}
		here := string(name) == `"`+key+`"`
		if err := s.expect(':'); err != nil {
			return false, err
		}
		if here {
			return true, s.expect('[')
		}
		if _, err := s.value(false); err != nil {
			return false, err
		}
	}
}

// next returns the next element of the array; io.EOF behind the last one. The bytes are valid until the next call.
//
// Errors: errLong for one element, after which the next one can be read; errSyntax.
func (s *scanner) next(first bool) ([]byte, error) {
	c, err := s.space()
	if err != nil {
		return nil, err
	}
	if c == ']' {
		_, err = s.in.ReadByte()
		if err == nil {
			err = io.EOF
		}
		return nil, err
	}
	if !first {
		if err := s.expect(','); err != nil {
			return nil, err
		}
		if _, err := s.space(); err != nil {
			return nil, err
		}
	}
	return s.value(true)
}

// value reads one value. keep returns its bytes.
func (s *scanner) value(keep bool) ([]byte, error) {
	s.buf = s.buf[:0]
	depth, text, escaped, long := 0, false, false, false
	for n := 0; ; n++ {
		c, err := s.in.ReadByte()
		if err != nil {
			return nil, end(err)
		}
		switch {
		case text:
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				text = false
			}
		case c == '"':
			text = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 { // it ends the array around a number or a word
				return s.kept(long, n), s.in.UnreadByte()
			}
		case c == ',' && depth == 0 && n > 0:
			return s.kept(long, n), s.in.UnreadByte()
		}
		if depth > maxDepth {
			return nil, errSyntax
		}
		if keep && !long {
			if s.buf = append(s.buf, c); len(s.buf) > maxRecord {
				long = true
			}
		}
		if !text && depth == 0 && (c == '"' || c == '}' || c == ']') {
			if long {
				return nil, errLong
			}
			return s.buf, nil
		}
	}
}

// kept returns the bytes of a number or a word.
func (s *scanner) kept(long bool, n int) []byte {
	if long || n == 0 {
		return nil
	}
	return bytes.TrimSpace(s.buf)
}

// lines reads the lines of a file, each at most maxRecord bytes.
type lines struct {
	in   *bufio.Reader
	line int64
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 1<<16)} }

// next returns the next line that is not blank, without its end, and its number; io.EOF behind the last one.
//
// Errors: errLong for one line, after which the next one can be read.
func (l *lines) next() (text []byte, line int64, err error) {
	for {
		text, err = l.read()
		if err != nil && !errors.Is(err, errLong) {
			return nil, l.line, err
		}
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return text, l.line, err
		}
	}
}

func (l *lines) read() ([]byte, error) {
	var text []byte
	for long := false; ; {
		part, err := l.in.ReadSlice('\n')
		if len(part) == 0 && len(text) == 0 && !long && err != nil {
			return nil, err
		}
		if long = long || len(text)+len(part) > maxRecord; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read the file: %w", err)
		default:
			l.line++
			if long {
				return nil, errLong
			}
			return bytes.TrimRight(text, "\r\n"), nil
		}
	}
}
