package intake

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"castellan/domain/kit/sheet"
)

// table is a Source of CSV whose first line names the columns.
type table struct {
	ignored
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

// columnsOf declares the columns of a format: the ones it needs, and all that it knows.
type columnsOf struct {
	needed []string // one of them
	known  []string
	strict bool // any other is refused
}

var (
	csvColumns = columnsOf{[]string{"email", "phoneNumber"}, []string{"externalId", "email", "emailVerified",
		"countryCode",
		"phoneNumber", "name", "surname", "language", "status", "hash", "totpSecret"}, true}
	cognitoColumns = columnsOf{[]string{"email", "phone_number"}, []string{"cognito:username", "sub", "email",
		"email_verified", "phone_number", "given_name", "family_name", "name", "locale", "cognito:mfa_enabled"}, false}
	djangoColumns = columnsOf{[]string{"password"}, []string{"id", "password", "email", "phone_number", "first_name",
		"last_name", "is_active"}, false}
)

func newTable(in io.Reader, c columnsOf, entry func(row) (Entry, error)) (*table, error) {
	t := &table{bound: &bound{in: in}, entry: entry, ignored: ignoring(shape{})}
	for _, name := range c.known {
		t.taken[name] = nil
	}
	t.in = csv.NewReader(t.bound)
	head, err := t.in.Read()
	if err != nil {
		return nil, fmt.Errorf("the first line must name the columns: %w", sheet.Fault(err, len(head), 0))
	}
	t.columns, t.line = slices.Clone(head), 1
	if err := c.check(t.columns); err != nil {
		return nil, err
	}
	t.in.ReuseRecord = true
	return t, nil
}

// check validates the first line of a file.
func (c columnsOf) check(columns []string) error {
	if err := cmp.Or(sheet.Encoding(strings.Join(columns, ",")), sheet.Separator(columns)); err != nil {
		return fmt.Errorf("the first line: %w", err)
	}
	for i, name := range columns {
		if slices.Contains(columns[:i], name) {
			return fmt.Errorf("column %d is named twice", i+1)
		}
		if c.strict && !slices.Contains(c.known, name) {
			return sheet.Unknown(i, name, c.known)
		}
	}
	if !slices.ContainsFunc(c.needed, func(n string) bool { return slices.Contains(columns, n) }) {
		return sheet.Missing(strings.Join(c.needed, " or "), columns)
	}
	return nil
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
		return Record{Line: t.line, Refused: sheet.Fault(err, len(fields), len(t.columns)).Error()}, nil
	case err != nil:
		return Record{}, fmt.Errorf("read the file: %w", err)
	}
	line, _ := t.in.FieldPos(0)
	t.line = int64(line)
	own := slices.Clone(fields)
	if err := sheet.InColumn(t.columns, own); err != nil {
		return Record{Line: t.line, Refused: err.Error()}, nil
	}
	e, err := t.entry(row{t.columns, own})
	if err != nil {
		return Record{Line: t.line, Refused: reason(err)}, nil
	}
	for i, text := range own {
		if _, taken := t.taken[t.columns[i]]; !taken && text != "" {
			t.add(t.columns[i])
		}
	}
	return Record{Line: t.line, Entry: e}, nil
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
	if r.is("cognito:mfa_enabled") {
		e.note("the second factor is not taken")
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
