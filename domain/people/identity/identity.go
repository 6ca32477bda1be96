// Package identity owns who a user says to be: the confirmation of the identity number and the name, and what the user
// tells of the use of the account (section 4.15 of the interface; decisions D-INF-03 to D-INF-06, D-AUTH-15).
//
// The one idea: everything is checked before anything is written, and what decides is checked again in the transaction
// that writes. An identity number is kept twice, never in the clear: as a keyed hash, by which accounts are counted and
// found, and sealed under its user.
//
// Start reading at Service.Confirm.
package identity

import (
	"context"
	"strings"
	"time"
	"unicode"

	"castellan/domain/kit/fault"
)

// Number is a Turkish identity number. It does not show itself.
type Number string

// String keeps the number out of logs and errors.
func (Number) String() string { return "identity number" }

// GoString keeps the number out of %#v.
func (Number) GoString() string { return "identity number" }

// wellFormed reports whether it has the form of an identity number.
func (n Number) wellFormed() bool {
	return len(n) == 11 && n[0] != '0' && strings.Trim(string(n), "0123456789") == ""
}

// checks reports whether the two check digits of a well-formed number are right: the tenth follows from the sums of the
// digits at odd and at even places, the eleventh from the sum of all before it.
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

// Person is who a user says to be.
type Person struct {
	Number                    Number
	Name, SecondName, Surname string
	BirthDate                 string // YYYY-MM-DD
	// What follows is kept as it was sent; "" for what was not.
	Country, CityID, DistrictID, Address, OccupationID string
	// Registered tells that the national register knew the person.
	Registered bool
}

// GivenNames are all names before the surname.
func (p Person) GivenNames() string { return strings.TrimSpace(p.Name + " " + p.SecondName) }

// FullName is the whole name.
func (p Person) FullName() string { return strings.TrimSpace(p.GivenNames() + " " + p.Surname) }

// BirthYear is the year of birth.
func (p Person) BirthYear() int { t, _ := time.Parse(time.DateOnly, p.BirthDate); return t.Year() }

// firstYear is the first year of birth that can be.
const firstYear = 1900

// read trims what was sent and judges its form. INVALID_FIELD with every faulty field.
func (p Person) read(now time.Time) (Person, []fault.Problem) {
	var problems []fault.Problem
	say := func(good bool, field, message string) {
		if !good {
			problems = append(problems, fault.Problem{Field: field, Message: message})
		}
	}
	p.Number = Number(strings.TrimSpace(string(p.Number)))
	say(p.Number.wellFormed(), "userIdentityNumber", "is no identity number")
	for _, f := range []struct {
		field string
		name  *string
		must  bool
	}{{"name", &p.Name, true}, {"surname", &p.Surname, true}, {"secondName", &p.SecondName, false}} {
		*f.name = strings.Join(strings.Fields(*f.name), " ")
		say(*f.name != "" || !f.must, f.field, "must not be blank")
		say(!strings.ContainsFunc(*f.name, hidden), f.field, "must not contain control characters")
	}
	var born time.Time
	for _, layout := range []string{time.DateOnly, "02.01.2006"} {
		if t, err := time.Parse(layout, strings.TrimSpace(p.BirthDate)); err == nil {
			born = t
		}
	}
	say(born.Year() >= firstYear && born.Before(now), "birthDate", "must be a date of birth, YYYY-MM-DD or DD.MM.YYYY")
	p.BirthDate = born.Format(time.DateOnly)
	return p, problems
}

// hidden reports whether a character is not seen, or turns the direction of those behind it.
func hidden(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// Registry is the national register of persons.
type Registry interface {
	// Verify reports whether the number, the names and the year of birth belong together. UNAVAILABLE when nobody knows.
	Verify(ctx context.Context, p Person) (bool, error)
}

// Store keeps what users say of themselves. Every method joins the transaction that its context carries. It is safe
// for concurrent use and passes identitytest.Run.
type Store interface {
	// Lock makes the transaction that ctx carries the only one between its Lock and its end that has called it with
	// this hash, on all nodes.
	Lock(ctx context.Context, hash string) error
	// Others counts the accounts with a hash of an identity number, the user's own left out.
	Others(ctx context.Context, userID string, hashes ...string) (int, error)
	// Keep keeps a person with the sealed number, in place of an earlier one.
	Keep(ctx context.Context, userID string, p Person, sealed []byte) error
	// Sealed reads the sealed number of a user. RECORD_NOT_FOUND.
	Sealed(ctx context.Context, userID string) ([]byte, error)
	// Kept reads what was kept of a user with the sealed number. RECORD_NOT_FOUND.
	Kept(ctx context.Context, userID string) (Kept, error)
	// Hashed lists the accounts with a hash of an identity number whose id follows
	// after, in the order of their ids.
	Hashed(ctx context.Context, after string, limit int) ([]Hashed, error)
	// Rehash replaces the hash of an account where it is still from.
	Rehash(ctx context.Context, userID, from, to string) error
	// Inform keeps what a user tells of the use of the account, in place of an earlier record, whose id stays.
	Inform(ctx context.Context, i Info) (id int64, err error)
}
