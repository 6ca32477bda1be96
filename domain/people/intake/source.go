package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"castellan/domain/account/password"
	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/sheet"
)

// Format names the format of a file.
type Format string

// The formats.
const (
	Castellan Format = "castellan" // JSON lines
	Auth0     Format = "auth0"     // JSON lines of an export, or the array of an import
	Keycloak  Format = "keycloak"  // JSON document with users
	Firebase  Format = "firebase"  // JSON document with users
	Cognito   Format = "cognito"   // CSV without passwords
	Django    Format = "django"    // JSON array of dumpdata, or CSV of the table
	CSV       Format = "csv"       // CSV with the fields of the castellan format
)

// Source reads the users of a file in their order. The memory does not grow with the file.
type Source interface {
	// Next returns the next user or refused line; io.EOF behind the last one. Any other error ends the file: what
	// follows cannot be read.
	Next() (Record, error)
	// Ignored returns the fields of the users read so far that the format does not take, and how many users have each.
	Ignored() map[string]int64
}

// Open returns the source of a file. firebase holds the hash parameters of the project, for that format.
//
// Errors: an unknown format, a file that does not begin like the format.
func Open(f Format, file io.Reader, firebase legacy.Firebase) (Source, error) {
	in, err := sheet.Text(file)
	if err != nil {
		return nil, err
	}
	first := byte(0)
	for n := 1; n <= 4096; n++ { // white space before it
		head, err := in.Peek(n)
		if err != nil {
			break
		}
		if first = head[n-1]; first != ' ' && first != '\t' && first != '\n' && first != '\r' {
			break
		}
	}
	switch f {
	case Castellan:
		return &jsonLines{lines: newLines(in), entry: castellanEntry}, nil
	case Auth0:
		if first == '[' {
			return &document{scanner: newScanner(in), entry: auth0Entry, ignored: ignoring(auth0Shape)}, nil
		}
		return &jsonLines{lines: newLines(in), entry: auth0Entry, ignored: ignoring(auth0Shape)}, nil
	case Keycloak:
		return &document{scanner: newScanner(in), key: "users", entry: keycloakEntry,
			ignored: ignoring(keycloakShape)}, nil
	case Firebase:
		return &document{scanner: newScanner(in), key: "users", entry: firebaseEntry(firebase),
			ignored: ignoring(firebaseShape)}, nil
	case Cognito:
		return newTable(in, cognitoColumns, cognitoRow)
	case Django:
		if first == '[' {
			return &document{scanner: newScanner(in), entry: djangoEntry, ignored: ignoring(djangoShape)}, nil
		}
		return newTable(in, djangoColumns, djangoRow)
	case CSV:
		return newTable(in, csvColumns, csvRow)
	}
	return nil, fmt.Errorf("there is no format %q", f)
}

// errOther reports an element of a document that is no user. It is skipped.
var errOther = errors.New("no user")

// jsonLines is a Source of JSON lines.
type jsonLines struct {
	*lines
	ignored
	entry func([]byte) (Entry, error)
}

func (s *jsonLines) Next() (Record, error) {
	text, line, err := s.next()
	if errors.Is(err, errLong) {
		return Record{Line: line, Refused: err.Error()}, nil
	}
	if err != nil {
		return Record{}, err
	}
	return s.record(line, text, s.entry), nil
}

// document is a Source of the array in a JSON document.
type document struct {
	*scanner
	ignored
	key    string // of the array; "" if the document is the array
	opened bool
	n      int64
	entry  func([]byte) (Entry, error)
}

func (s *document) Next() (Record, error) {
	if !s.opened {
		found, err := s.toArray(s.key)
		if err != nil {
			return Record{}, err
		}
		if !found {
			return Record{}, errSyntax
		}
		s.opened = true
	}
	for {
		text, err := s.next(s.n == 0)
		if errors.Is(err, errLong) {
			s.n++
			return Record{Line: s.n, Refused: err.Error()}, nil
		}
		if err != nil {
			return Record{}, err
		}
		s.n++
		if r := s.record(s.n, text, s.entry); r.Refused != errOther.Error() {
			return r, nil
		}
	}
}

// record judges the text of a user.
func (g *ignored) record(line int64, text []byte, entry func([]byte) (Entry, error)) Record {
	e, err := Entry{}, error(nil)
	if !utf8.Valid(text) {
		err = sheet.Encoding(string(text))
	} else if err = unique(text, func(string, json.RawMessage) {}); err == nil {
		e, err = entry(text)
	}
	if err == nil && !e.Other {
		g.count(text)
	}
	if err != nil {
		return Record{Line: line, Refused: reason(err)}
	}
	return Record{Line: line, Entry: e}
}

var (
	errJSON    = errors.New("is not a JSON object of this format")
	errUnknown = errors.New("has an unknown field")
	errTwice   = errors.New("has a field twice")
)

// unique refuses an object with a field twice, because programs disagree on which one counts. It calls each for every
// field.
func unique(text []byte, each func(name string, value json.RawMessage)) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errJSON
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errJSON
		}
		if seen[strings.ToLower(name)] {
			return errTwice
		}
		seen[strings.ToLower(name)] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return errJSON
		}
		each(name, value)
	}
	return nil
}

// decode reads an object. strict refuses unknown fields.
func decode(text []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if strict {
		d.DisallowUnknownFields()
	}
	err := d.Decode(into)
	switch {
	case err == nil && len(bytes.TrimSpace(text[d.InputOffset():])) > 0:
		return errJSON
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "unknown field"):
		return errUnknown
	}
	return errJSON
}

func hashText(text string) (Hash, error) {
	if password.Imported(text) {
		k, err := password.KindOf(text)
		switch {
		case err == nil && k.Check() != nil:
			return Hash{Beyond: legacy.ErrCost.Error()}, nil
		case err != nil:
			return Hash{}, errors.New(hashReason(legacy.ErrMalformed))
		}
		return Hash{Stored: text}, nil
	}
	h, none, err := legacy.Read(text)
	return hashOf(h, none, err)
}

// hashOf returns the hash that a reader found.
func hashOf(h legacy.Hash, none bool, err error) (Hash, error) {
	switch {
	case errors.Is(err, legacy.ErrCost), errors.Is(err, legacy.ErrUnsupported):
		return Hash{Beyond: err.Error()}, nil
	case err != nil:
		return Hash{}, errors.New(hashReason(err))
	case none:
		return Hash{}, nil
	}
	return Hash{Foreign: &h}, nil
}
