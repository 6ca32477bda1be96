// Package corporate manages applications of companies and the users of companies (section 4.20 of the interface;
// decisions D-COR-01 to D-COR-05).
//
// The one idea: a User links an account to a company. Contact data supplied by a company are stored in the link and
// never in the account, so that a link cannot take over an account.
//
// Start reading at User; Service applies the operations of administrators.
package corporate

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/kit/page"
)

// Application is an application of a company.
type Application struct {
	ID                             int64
	ExternalID                     string // of the reporting service; "" for none
	CompanyName, TaxNumber, Status string
	CreatedAt                      time.Time // set by the store
}

// User is an account as a user of a company.
type User struct {
	ID              int64
	UserID          string
	CorporateUserID string // identifies the company
	Role, Status    string
	CountryCode     string  // dialling code, digits only
	PhoneNumber     string  // without the dialling code, digits only
	Email           *string // in canonical form; nil: none
	Made            bool    // the account was made for this link
}

// Place is the position of a record in its list, newest first.
type Place struct{ ID int64 }

func (a Application) Mark() Place { return Place{a.ID} }

func (u User) Mark() Place { return Place{u.ID} }

// ApplicationQuery selects applications; a nil field does not filter. CompanyName is a part of the name, in any case.
type ApplicationQuery struct {
	ID                             *int64
	CompanyName, TaxNumber, Status *string
}

// UserQuery selects users; a nil field does not filter.
type UserQuery struct {
	ID                              *int64
	UserID, CorporateUserID, Status *string
}

// Store stores applications and users. Every method joins the transaction that its context carries. It is safe for
// concurrent use.
type Store interface {
	// Lock serialises transactions across all nodes: the transaction that ctx carries is the only one that holds the
	// lock, until its end.
	Lock(ctx context.Context) error
	// Applications lists the matching applications, newest first.
	Applications(ctx context.Context, q ApplicationQuery, p page.Query[Place]) (page.Of[Application], error)
	// AddApplication inserts an application and returns its id.
	AddApplication(ctx context.Context, a Application) (int64, error)
	// SetApplicationStatus sets the status of an application and returns its previous state, as one step: a concurrent
	// call waits for the transaction of the first. RECORD_NOT_FOUND.
	SetApplicationStatus(ctx context.Context, id int64, status string) (Application, error)
	// Users lists the matching users, newest first.
	Users(ctx context.Context, q UserQuery, p page.Query[Place]) (page.Of[User], error)
	// FindLink finds the user of the same company with the same account; if u has no account, the user whose account was
	// made for the same mail address. RECORD_NOT_FOUND.
	FindLink(ctx context.Context, u User) (User, error)
	// AddUser inserts a user and returns its id; RECORD_ALREADY_EXIST if the link exists (FindLink).
	AddUser(ctx context.Context, u User) (int64, error)
	// ChangeUser calls f with a user and saves the result, as one step; Made is unchanged. RECORD_NOT_FOUND,
	// RECORD_ALREADY_EXIST.
	ChangeUser(ctx context.Context, id int64, f func(User) (User, error)) error
}

// The maximum lengths of names and labels, in characters.
const (
	maxNameChars = 200
	maxMarkChars = 64
)

// Check validates an application. INVALID_FIELD with every invalid field.
func (a Application) Check() error {
	return fault.All(a.problems())
}

func (a Application) problems() fault.Problems {
	return append(texts(maxNameChars, "companyName", a.CompanyName),
		texts(maxMarkChars, "taxNumber", a.TaxNumber, "status", a.Status)...)
}

// Canonical returns the user with phone and mail address in canonical form. INVALID_FIELD with every invalid field.
func (u User) Canonical() (User, error) {
	ps := texts(maxMarkChars, "corporateUserId", u.CorporateUserID, "status", u.Status, "role", u.Role)
	reached, more := user.Identify(&u.CountryCode, &u.PhoneNumber, u.Email)
	if err := fault.All(append(ps, more...)); err != nil {
		return u, err
	}
	u.CountryCode, _ = user.DialCode(u.CountryCode) // validated by Identify
	u.PhoneNumber = strings.TrimPrefix(reached.Phone, "+"+u.CountryCode)
	if u.Email != nil {
		u.Email = &reached.Mail
	}
	return u, nil
}

// texts validates required texts; each follows its field.
func texts(most int, pairs ...string) (ps fault.Problems) {
	for i := 0; i < len(pairs); i += 2 {
		// #nosec G602: the caller passes pairs.
		field, text := pairs[i], pairs[i+1]
		n := utf8.RuneCountInString(strings.TrimSpace(text))
		ps.Require(n > 0, field, "must not be blank")
		ps.Require(n <= most, field, "is too long")
		ps.Require(n == 0 || n > most || legible.Valid(text), field, "must not contain control characters")
	}
	return ps
}
