// Package agreement manages terms for users (section 4.10 of the interface; decisions D-ADM-03, D-ADM-07): named files
// in versions, their acceptance by users, and the mailing of a new version.
//
// The one idea: a version never changes. Changed terms are a new version.
//
// Start reading at Service.Publish; mailing.go is the mailing job.
package agreement

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Agreement is one version of some terms. Name and Version together are unique.
type Agreement struct {
	ID             int64
	Name           string
	Description    string
	Version        string
	AcceptRequired bool
	FilePath       string // key of the file
	CreatedBy      string
	CreatedAt      time.Time
	AcceptedAt     time.Time // by the user of the query; zero: not accepted
}

// Limits of the texts, in characters.
const (
	MaxName        = 200
	MaxDescription = 4000
	MaxVersion     = 32
)

// Check validates an agreement. INVALID_FIELD with every invalid field.
func (a Agreement) Check() error {
	var ps fault.Problems
	for _, f := range []struct {
		field, text string
		most        int
	}{{"name", a.Name, MaxName}, {"description", a.Description, MaxDescription}, {"version", a.Version, MaxVersion}} {
		ps.Require(utf8.RuneCountInString(f.text) <= f.most, f.field, "is too long")
	}
	ps.Require(utf8.RuneCountInString(a.Name) > MaxName || legible.Valid(a.Name), "name",
		"must not contain control characters")
	control := func(r rune) bool { return r < ' ' }
	ps.Require(strings.TrimSpace(a.Version) != "" && !strings.ContainsFunc(a.Version, control), "version",
		"must be a number or a text such as 2.1")
	return fault.All(ps)
}

// next returns the version after v: the number at its end, incremented.
func next(v string) string {
	stem := strings.TrimRight(v, "0123456789")
	n, err := strconv.ParseInt(v[len(stem):], 10, 32)
	if err != nil { // no number at the end, or a number out of range
		return v + ".1"
	}
	return stem + strconv.FormatInt(n+1, 10)
}

// Query selects agreements as a user sees them.
type Query struct {
	UserID  string
	Version *string // nil: any
}

// Store stores agreements. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Lock makes other changes wait until the transaction of ctx ends.
	Lock(ctx context.Context) error
	// List lists the matching agreements in order of creation.
	List(ctx context.Context, q Query) ([]Agreement, error)
	// Get reads an agreement, without AcceptedAt. RECORD_NOT_FOUND.
	Get(ctx context.Context, id int64) (Agreement, error)
	// Last reads the newest version under a name. RECORD_NOT_FOUND.
	Last(ctx context.Context, name string) (Agreement, error)
	// Add inserts an agreement and returns its id; RECORD_ALREADY_EXIST if the name has that version, also under
	// concurrent calls.
	Add(ctx context.Context, a Agreement) (int64, error)
	// Accept records that a user accepted an agreement, once: a repeat changes nothing. RECORD_NOT_FOUND if the
	// agreement does not exist.
	Accept(ctx context.Context, id int64, userID string) error
	// ReferencedKeys returns those of the keys that are files of agreements.
	ReferencedKeys(ctx context.Context, keys []string) ([]string, error)
}
