package intake

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is a Source of CSV whose first line names the columns.
type table struct {
	in      *csv.Reader
	bound   *bound
	columns []string
	entry   func(row) (Entry, error)
	line    int64
}

// row holds the fields of a line by their columns.
type row struct {
	columns, fields []string
}

// get returns a field; "" for an absent column.
func (r row) get(column string) string {
	if i := slices.Index(r.columns, column); i >= 0 {
		return r.fields[i]
	}
	return ""
}

// is reads a truth value as databases and programs write it.
func (r row) is(column string) bool {
	switch strings.ToLower(r.get(column)) {
	case "true", "t", "1", "yes":
		return true
	}
	return false
}

// columnsOf declares the columns of a format: the ones it needs, and all that it knows; no list: any other is ignored.
type columnsOf struct {
	needed []string // one of them
	known  []string
}

var (
	csvColumns = columnsOf{[]string{"email", "phoneNumber"}, []string{"externalId", "email", "emailVerified",
		"countryCode",
		"phoneNumber", "name", "surname", "language", "status", "hash", "totpSecret"}}
	cognitoColumns = columnsOf{[]string{"email", "phone_number"}, nil}
	djangoColumns  = columnsOf{[]string{"password"}, nil}
)

func newTable(in io.Reader, c columnsOf, entry func(row) (Entry, error)) (*table, error) {
	t := &table{bound: &bound{in: in}, entry: entry}
	t.in = csv.NewReader(t.bound)
	head, err := t.in.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line must name the columns: %w", structural(err))
	}
	t.columns, t.line = slices.Clone(head), 1
	for i, name := range t.columns {
		if slices.Contains(t.columns[:i], name) {
			return nil, fmt.Errorf("column %d is named twice", i+1)
		}
		if c.known != nil && !slices.Contains(c.known, name) {
			return nil, fmt.Errorf("column %d is unknown; known are %s", i+1, strings.Join(c.known, ", "))
		}
	}
	if !slices.ContainsFunc(c.needed, func(n string) bool { return slices.Contains(t.columns, n) }) {
		return nil, fmt.Errorf("a column %s is missing", strings.Join(c.needed, " or "))
	}
	t.in.ReuseRecord = true
	return t, nil
}

func (t *table) Next() (Record, error) {
	t.bound.n = 0
	fields, err := t.in.Read()
	var parse *csv.ParseError
	switch {
	case errors.Is(err, errLong), errors.Is(err, io.EOF):
		return Record{}, err
	case errors.As(err, &parse):
		t.line = int64(parse.StartLine)
		return Record{Line: t.line, Refused: structural(err).Error()}, nil
	case err != nil:
		return Record{}, fmt.Errorf("read the file: %w", err)
	}
	line, _ := t.in.FieldPos(0)
	t.line = int64(line)
	own := slices.Clone(fields)
	for _, text := range own {
		if !utf8.ValidString(text) {
			return Record{Line: t.line, Refused: errEncoding.Error()}, nil
		}
	}
	e, err := t.entry(row{t.columns, own})
	if err != nil {
		return Record{Line: t.line, Refused: reason(err)}, nil
	}
	return Record{Line: t.line, Entry: e}, nil
}

// structural returns the fault of a line without its text.
func structural(err error) error {
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return errors.New("has another number of fields than the first line")
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		return errors.New("has a quotation mark in the wrong place")
	case errors.Is(err, io.EOF):
		return errors.New("the file is empty")
	}
	return err
}

// bound fails a reader that reads more than a record and what it reads ahead.
type bound struct {
	in io.Reader
	n  int
}

func (b *bound) Read(p []byte) (int, error) {
	if b.n > maxRecord {
		return 0, errLong
	}
	n, err := b.in.Read(p)
	b.n += n
	return n, err
}

func csvRow(r row) (Entry, error) {
	h, err := hashText(r.get("hash"))
	return Entry{ExternalID: r.get("externalId"), Email: r.get("email"), EmailVerified: r.is("emailVerified"),
		CountryCode: r.get("countryCode"), Phone: r.get("phoneNumber"), Name: r.get("name"), Surname: r.get("surname"),
		Language: r.get("language"), Status: r.get("status"), Hash: h, TOTP: r.get("totpSecret")}, err
}

// cognitoRow reads a line of the import format of Cognito. Cognito exports no password; the user sets one by a reset.
func cognitoRow(r row) (Entry, error) {
	e := Entry{ExternalID: r.get("cognito:username"), Email: r.get("email"), EmailVerified: r.is("email_verified"),
		International: r.get("phone_number"), Name: r.get("given_name"), Surname: r.get("family_name"),
		Language: shortLanguage(r.get("locale")), Status: state(false)}
	if e.ExternalID == "" {
		e.ExternalID = r.get("sub")
	}
	if e.Name == "" && e.Surname == "" {
		e.Name, e.Surname = divided(r.get("name"))
	}
	return e, nil
}

// djangoRow reads a line of the table auth_user.
func djangoRow(r row) (Entry, error) {
	h, err := djangoHash(r.get("password"))
	return Entry{ExternalID: r.get("id"), Email: r.get("email"), International: r.get("phone_number"),
		Name: r.get("first_name"), Surname: r.get("last_name"),
		Status: state(slices.Contains(r.columns, "is_active") && !r.is("is_active")), Hash: h}, err
}
