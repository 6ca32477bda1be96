// Package identity confirms the identity of users (section 4.15 of the interface; decisions D-INF-03 to D-INF-06,
// D-AUTH-15): the identity number, the name, and the user's statements about the use of the account.
//
// The one idea: everything is checked before anything is written, and the deciding conditions are checked again in the
// writing transaction. An identity number is stored twice, never in the clear: as a keyed hash for counting and finding
// accounts, and sealed under its user.
//
// Start reading at Service.Confirm.
package identity

import (
	"context"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Number is a Turkish identity number. Its value is never printed.
type Number string

// String keeps the number out of logs and errors.
func (Number) String() string { return "identity number" }

// GoString keeps the number out of %#v.
func (Number) GoString() string { return "identity number" }

func (n Number) wellFormed() bool {
	return len(n) == 11 && n[0] != '0' && strings.Trim(string(n), "0123456789") == ""
}

// checks reports whether the two check digits of a well-formed number are correct. The tenth follows from the sums of
// the digits at odd and at even positions, the eleventh from the sum of all preceding digits.
func (n Number) checks() bool {
	var odd, even int
	for i := range 9 {
		if i%2 == 0 {
			odd += int(n[i] - '0')
		} else {
			even += int(n[i] - '0')
		}
	}
	tenth := (7*odd + 9*even) % 10
	return int(n[9]-'0') == tenth && int(n[10]-'0') == (odd+even+tenth)%10
}

// Person is the identity stated by a user.
type Person struct {
	Number                    Number
	Name, SecondName, Surname string
	BirthDate                 string // YYYY-MM-DD
	// The following fields are stored as sent; "" if they were not sent.
	Country, CityID, DistrictID, Address, OccupationID string
	// Registered is true if the national register knew the person.
	Registered bool
}

// GivenNames returns all names before the surname.
func (p Person) GivenNames() string { return strings.TrimSpace(p.Name + " " + p.SecondName) }

// FullName returns the whole name.
func (p Person) FullName() string { return strings.TrimSpace(p.GivenNames() + " " + p.Surname) }

func (p Person) BirthYear() int { t, _ := time.Parse(time.DateOnly, p.BirthDate); return t.Year() }

// firstYear is the earliest possible year of birth.
const firstYear = 1900

// read trims and validates the fields. INVALID_FIELD with every invalid field.
func (p Person) read(now time.Time) (Person, fault.Problems) {
	var ps fault.Problems
	p.Number = Number(strings.TrimSpace(string(p.Number)))
	ps.Require(p.Number.wellFormed(), "userIdentityNumber", "is not a valid identity number")
	for _, f := range []struct {
		field string
		name  *string
		must  bool
	}{{"name", &p.Name, true}, {"surname", &p.Surname, true}, {"secondName", &p.SecondName, false}} {
		*f.name = strings.Join(strings.Fields(*f.name), " ")
		ps.Require(*f.name != "" || !f.must, f.field, "must not be blank")
		ps.Require(legible.Valid(*f.name), f.field, "must not contain control characters")
	}
	var born time.Time
	for _, layout := range []string{time.DateOnly, "02.01.2006"} {
		if t, err := time.Parse(layout, strings.TrimSpace(p.BirthDate)); err == nil {
			born = t
		}
	}
	ps.Require(born.Year() >= firstYear && born.Before(now), "birthDate",
		"must be a date of birth, YYYY-MM-DD or DD.MM.YYYY")
	p.BirthDate = born.Format(time.DateOnly)
	return p, ps
}

// Registry is the national register of persons.
type Registry interface {
	// Verify reports whether the number, the names and the year of birth belong together. UNAVAILABLE if the register
	// cannot answer.
	Verify(ctx context.Context, p Person) (bool, error)
}

// Store stores the statements of users about themselves. Every method joins the transaction that its context carries.
// It is safe for concurrent use.
type Store interface {
	// Lock serialises transactions per hash across all nodes: the transaction that ctx carries is the only one that
	// holds the lock of the hash, until its end.
	Lock(ctx context.Context, hash string) error
	// Others counts the accounts with a hash of an identity number, except the user's own.
	Others(ctx context.Context, userID string, hashes ...string) (int, error)
	// Keep stores a person with the sealed number, and replaces an earlier one.
	Keep(ctx context.Context, userID string, p Person, sealed []byte) error
	// Kept reads the stored part of a user's identity with the sealed number. RECORD_NOT_FOUND.
	Kept(ctx context.Context, userID string) (Kept, error)
	// Hashed lists the accounts with a hash of an identity number whose id is greater than after, in the order of their
	// ids.
	Hashed(ctx context.Context, after string, limit int) ([]Hashed, error)
	// Rehash replaces the hash of an account if it is still from.
	Rehash(ctx context.Context, userID, from, to string) error
	// Inform stores the user's statements about the use of the account, and replaces an earlier record, whose id is
	// unchanged.
	Inform(ctx context.Context, i Info) (id int64, err error)
}
