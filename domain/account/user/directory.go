package user

import (
	"context"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/page"
)

// Directory finds accounts for administrators (section 4.12 of the interface). It is
// safe for concurrent use.
type Directory interface {
	// Find lists the selected accounts by id, or newest first.
	Find(ctx context.Context, q Query, p page.Query[Place]) (page.Of[User], error)
	// ByIDs lists the accounts with the given ids in ascending order of ids. It reads them in one statement and omits
	// unknown ids.
	ByIDs(ctx context.Context, ids []string) ([]User, error)
	// Registered lists the accounts created in a span, newest first.
	Registered(ctx context.Context, s Span, p page.Query[RegisteredPlace]) (page.Of[Registered], error)
	// Active lists the accounts with a login on the day (UTC) of since or later, the latest day first.
	Active(ctx context.Context, since time.Time, p page.Query[VisitorPlace]) (page.Of[Visitor], error)
	// CountByStatus counts the accounts of each status that occurs.
	CountByStatus(ctx context.Context) (map[Status]int64, error)
	// CountByLevel counts the accounts of each level that occurs.
	CountByLevel(ctx context.Context) (map[int]int64, error)
	// CountByDay counts the registrations of each day (UTC) in a span, in ascending order. It omits days without
	// registrations.
	CountByDay(ctx context.Context, s Span) ([]DayCount, error)
}

// Query selects accounts; nil: any. Its values are canonical.
type Query struct {
	ID, Phone, Email *string
	// National is a phone number as written without its dialling code; with Phone, either is enough.
	National *string
	// IdentityHashes are the possible keyed hashes of an identity number; nil: any.
	IdentityHashes []string
	TaxNumber      *string
	// Search finds words of the name and the mail address, and parts of the phone number; nil: any.
	Search *Search
	// Name is a part of the name, without case and accents (Fold).
	Name        *string
	KYCApproved *bool
	BirthDate   *string // YYYY-MM-DD
	Type        *Type
	Status      *Status
	NewestFirst bool
}

// Place is the position of an account in a list by id. Ids begin with the instant of the registration, so they sort
// by it.
type Place struct{ ID string }

func (u User) Mark() Place { return Place{u.ID} }

// Registered is an account in a list by registration.
type Registered struct{ User }

// RegisteredPlace is the position of an account in a list by registration.
type RegisteredPlace struct {
	At time.Time
	ID string
}

func (r Registered) Mark() RegisteredPlace { return RegisteredPlace{r.CreatedAt, r.ID} }

// Visitor is an account with the day of its last login.
type Visitor struct {
	User
	LastLogin time.Time // the first instant of the day (UTC)
}

// VisitorPlace is the position of an account in a list by last login.
type VisitorPlace struct {
	Day time.Time
	ID  string
}

func (v Visitor) Mark() VisitorPlace { return VisitorPlace{v.LastLogin, v.ID} }

// Span is the time from From to To, both inclusive.
type Span struct{ From, To time.Time }

// DayCount is the number of registrations on a day (UTC).
type DayCount struct {
	Day   time.Time // its first instant
	Count int64
}

// Day returns the first instant of the day (UTC) of t.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// FullName returns the name for display.
func (u User) FullName() string { return strings.TrimSpace(u.Name + " " + u.Surname) }

// The values of kycConfirm that count as confirmed (D-USR-01).
const (
	ManuelApproved   = "manuelApproved"
	OCROrNFCApproved = "ocrOrNfcApproved"
)

// KYCApproved reports whether the identity of the account is confirmed.
func (u User) KYCApproved() bool {
	return u.KYCConfirm == ManuelApproved || u.KYCConfirm == OCROrNFCApproved
}

// FoldName returns the form in which the names of a person are compared. It ignores case, and the four Turkish letters
// i are one. It has accents, unlike Fold.
func FoldName(name string) string {
	fold := func(r rune) rune {
		if r == 'İ' || r == 'ı' {
			return 'i'
		}
		return r
	}
	return strings.ToLower(strings.Map(fold, norm.NFC.String(name)))
}
