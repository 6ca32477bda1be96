package sheet

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// headBytes is the part of a file by which its encoding is known.
const headBytes = 64

// Text returns the text of a file without the byte order mark with which some programs begin it.
//
// Errors: a file in UTF-16; those of file.
func Text(file io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) && len(head) < len("\ufeff") { // otherwise the reader returns it in its place
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if isUTF16(head) {
		return nil, errors.New("the file is in UTF-16, which PowerShell and Excel (Unicode text) write; save it as UTF-8")
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, err = in.Discard(len("\ufeff"))
		return in, err
	}
	return in, nil
}

// isUTF16 reports whether a file begins with a mark of UTF-16, or has a zero in every second byte.
func isUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	zeros := [2]int{}
	for i, c := range head {
		if c == 0 {
			zeros[i%2]++
		}
	}
	return len(head) >= 4 && max(zeros[0], zeros[1]) >= len(head)/2-1 && min(zeros[0], zeros[1]) == 0
}

// turkish are the letters ĞİŞğış in Windows-1254 and ISO 8859-9.
const turkish = "\xd0\xdd\xde\xf0\xfd\xfe"

// Encoding returns an error for a text that is not UTF-8. It names the encoding that the text probably has.
func Encoding(text string) error {
	switch {
	case utf8.ValidString(text):
		return nil
	case strings.ContainsAny(text, "\x00"):
		return errors.New("is not UTF-8 but probably UTF-16; save the file as UTF-8")
	}
	for i := range len(text) {
		if strings.IndexByte(turkish, text[i]) >= 0 {
			return errors.New("is not UTF-8 but probably Windows-1254 (Turkish); save the file as UTF-8")
		}
	}
	return errors.New("is not UTF-8 but probably Windows-1252; save the file as UTF-8")
}

// Separator returns an error for a line of columns that another character than a comma separates.
func Separator(columns []string) error {
	if len(columns) != 1 {
		return nil
	}
	for separator, name := range map[string]string{";": "semicolons", "\t": "tabs", "|": "vertical bars"} {
		if strings.Contains(columns[0], separator) {
			return fmt.Errorf("the columns are separated by %s; they must be separated by commas", name)
		}
	}
	return nil
}

// Unknown returns the error about a column, by its position from 0.
func Unknown(at int, name string, known []string) error {
	for _, k := range known {
		if plain(k) == plain(name) {
			return fmt.Errorf("column %d is %q; did you mean %s?", at+1, name, k)
		}
	}
	what := "is unknown"
	if nameLike(name) {
		what = fmt.Sprintf("%q is unknown", name)
	}
	return fmt.Errorf("column %d %s; known are %s", at+1, what, strings.Join(known, ", "))
}

// Missing returns the error about a file that lacks a column.
func Missing(needed string, columns []string) error {
	var names []string
	for _, c := range columns {
		if !nameLike(c) {
			return fmt.Errorf("a column %s is missing, or the first line does not name the columns", needed)
		}
		names = append(names, c)
	}
	return fmt.Errorf("a column %s is missing; the file has %s", needed, strings.Join(names, ", "))
}

// nameLike reports whether a text can be the name of a column. Any other one may be a person's, or a secret, in a file
// without a line of names.
var nameLike = regexp.MustCompile(`^[A-Za-z_: .-][A-Za-z0-9_: .-]{0,39}$`).MatchString

// plain is a name of a column without what people vary: case, blanks, underscores and dashes.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
}

// Fault returns what is wrong with a line, without its text. fields are those that were read.
func Fault(err error, fields, columns int) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return fmt.Errorf("has %d fields, and the first line has %d", fields, columns)
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		if errors.As(err, &parse) {
			return fmt.Errorf("has a quotation mark in the wrong place, at byte %d of line %d", parse.Column, parse.Line)
		}
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	}
	return err
}

// InColumn returns an error about the encoding of the first field of a line that is not UTF-8.
func InColumn(columns, fields []string) error {
	at := slices.IndexFunc(fields, func(text string) bool { return !utf8.ValidString(text) })
	if at < 0 {
		return nil
	}
	return fmt.Errorf("column %s %w", columns[at], Encoding(fields[at]))
}
