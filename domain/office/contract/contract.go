// Package contract owns the contracts that users agree to, such as the terms of
// use, and their details: parts with a title and a text, in an order (sections
// 2.6 and 4.8 of the interface; decisions D-CON-01 to D-CON-04).
//
// The one idea: whatever is done to one detail is done to many in one
// transaction, all or nothing; one detail is a list of one.
//
// Start reading at Service.
package contract

import (
	"context"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
)

// MaxDetails is how many details one call may write (D-CON-03).
const MaxDetails = 500

// MaxOrderNo is the highest place of a detail.
const MaxOrderNo = 1_000_000_000

// Contract is one contract. Its Code is unique.
type Contract struct {
	ID        int64
	Code      string
	Name      string
	Version   string // "" for none
	Active    bool
	CreatedAt time.Time
}

var codeForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`)

const maxNameChars = 200

// Check judges a contract. INVALID_FIELD with every faulty field.
func (c Contract) Check() error {
	var ps []fault.Problem
	if !codeForm.MatchString(c.Code) {
		ps = append(ps, fault.Problem{Field: "code",
			Message: "must be 2 to 64 capital letters, digits and underscores, beginning with a letter"})
	}
	if n := utf8.RuneCountInString(c.Name); n == 0 || n > maxNameChars {
		ps = append(ps, fault.Problem{Field: "name", Message: "must be 1 to 200 characters"})
	}
	if utf8.RuneCountInString(c.Version) > maxNameChars {
		ps = append(ps, fault.Problem{Field: "version",
			Message: fmt.Sprintf("is longer than %d characters", maxNameChars)})
	}
	return fault.All(ps)
}

// Detail is one part of a contract. Details stand in the order of OrderNo, then
// of their ids.
type Detail struct {
	ID, ContractID int64
	Title          string // plain text
	Content        string // HTML, cleaned by the policy of the name Policy
	Policy         string
	OrderNo        int64
}

// Draft is a detail that is added. Without an OrderNo it comes behind all others.
type Draft struct {
	Title, Content string
	OrderNo        *int64
}

// Change is a partial update of a detail; nil: as it is.
type Change struct {
	ID             int64
	ContractID     *int64 // moves it to another contract
	Title, Content *string
	OrderNo        *int64
}

// Accept notes that a user accepted a contract, in the version of that moment. It commits
// with the account of the user.
type Accept struct {
	UserID     string
	ContractID int64
	Version    string
	At         time.Time
}

// Table names the table of the write.
func (Accept) Table() string { return "contract_acceptance" }

// Place is where a detail goes.
type Place struct{ ID, OrderNo int64 }

// Query selects contracts; nil: any.
type Query struct {
	ID   *int64
	Code *string
}

// Store keeps contracts. Every method joins the transaction that its context
// carries. It is safe for concurrent use and passes contracttest.Run.
type Store interface {
	// Lock makes the transaction that ctx carries the only one between its Lock and
	// its end that has called it, on all nodes.
	Lock(ctx context.Context) error
	// Contracts lists the selected contracts in the order of their ids.
	Contracts(ctx context.Context, q Query) ([]Contract, error)
	// Add inserts a contract and returns its id; RECORD_ALREADY_EXIST when the code
	// is taken, also under concurrent calls.
	Add(ctx context.Context, c Contract) (int64, error)
	// Details lists the details of a contract in their order.
	Details(ctx context.Context, contractID int64) ([]Detail, error)
	// DetailsOf lists the details with these ids that there are, in their order.
	DetailsOf(ctx context.Context, ids []int64) ([]Detail, error)
	// AddDetail inserts a detail of a contract that there is, and returns its id.
	AddDetail(ctx context.Context, d Detail) (int64, error)
	// SaveDetail replaces the detail of that id. RECORD_NOT_FOUND.
	SaveDetail(ctx context.Context, d Detail) error
	// Accepted lists what a user accepted, in the order of the contracts.
	Accepted(ctx context.Context, userID string) ([]Accept, error)
	// RemoveDetails deletes the details of these ids that there are.
	// RECORD_NOT_FOUND when there is none.
	RemoveDetails(ctx context.Context, ids []int64) error
}

// Seed writes the contracts of a new installation. The caller sees to it that
// this happens once, in one transaction.
func Seed(ctx context.Context, s Store) error {
	for _, c := range []Contract{{Code: "TERMS_OF_USE", Name: "Terms of use"}, {Code: "PRIVACY", Name: "Privacy notice"}} {
		c.Active = true
		if _, err := s.Add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
