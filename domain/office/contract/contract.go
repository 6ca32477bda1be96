// Package contract manages the contracts that users accept, such as the terms of use (sections 2.6 and 4.8 of the
// interface; decisions D-CON-01 to D-CON-04). A contract has details: ordered parts with a title and a text.
//
// The one idea: every operation takes a list of details and applies to all or none in one transaction; a single detail
// is a list of one. A new version of a contract is another Contract with the same code and its own details (D-INT-14),
// so an acceptance names the text that was accepted.
//
// Start reading at Service; versions are in version.go.
package contract

import (
	"context"
	"time"
	"unicode/utf8"

	"castellan/domain/kit/code"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// MaxDetails is the maximum number of details in one call (D-CON-03).
const MaxDetails = 500

// MaxOrderNo is the highest order number of a detail.
const MaxOrderNo = 1_000_000_000

// Contract is one version of a contract. Versions have the same Code and different values of Version. At most one of
// them is active.
type Contract struct {
	ID          int64 `audit:"-"` // the target
	Code        string
	Name        string // English
	Turkish     string // name; "" for Name
	Arabic      string // name; "" for Name
	Version     string // "" for none
	Active      bool
	PublishedAt time.Time `audit:"-"` // first publication; zero for a draft
	CreatedAt   time.Time `audit:"-"`
}

// Check validates a contract. INVALID_FIELD with every invalid field.
func (c Contract) Check() error {
	ps := fault.Problems(code.Check("code", c.Code))
	legible.CheckName(&ps, "name", c.Name)
	for _, f := range []struct{ field, text string }{{"nameTr", c.Turkish}, {"nameAr", c.Arabic}, {"version", c.Version}} {
		fits := utf8.RuneCountInString(f.text) <= legible.MaxName
		ps.Require(fits, f.field, "is longer than %d characters", legible.MaxName)
		ps.Require(!fits || legible.Valid(f.text), f.field, "must not contain control characters")
	}
	return fault.All(ps)
}

// Detail is one part of a contract. Details are sorted by OrderNo, then by id.
type Detail struct {
	ID         int64 `audit:"-"` // the target
	ContractID int64
	Title      string // plain text
	Content    string // HTML, cleaned by the policy named Policy
	Policy     string `audit:"-"`
	OrderNo    int64
}

// Draft is a new detail. Without an OrderNo it is added at the end.
type Draft struct {
	Title, Content string
	OrderNo        *int64
}

// Change is a partial update of a detail; nil: unchanged.
type Change struct {
	ID             int64
	ContractID     *int64 // moves it to another contract
	Title, Content *string
	OrderNo        *int64
}

// Accept records that a user accepted a contract, in the version of that moment. It commits with the account of the
// user.
type Accept struct {
	UserID     string
	ContractID int64
	Version    string
	At         time.Time
}

// Table names the table of the write.
func (Accept) Table() string { return "contract_acceptance" }

// Query selects contracts; a nil field does not filter.
type Query struct {
	ID   *int64
	Code *string
}

// Store stores contracts. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Lock serialises transactions across all nodes: the transaction that ctx carries is the only one that holds the
	// lock, until its end.
	Lock(ctx context.Context) error
	// Contracts lists the matching contracts in the order of their ids.
	Contracts(ctx context.Context, q Query) ([]Contract, error)
	// Add inserts a contract and returns its id. RECORD_ALREADY_EXIST if its code has the version, or if it is active
	// beside another active version, also under concurrent calls. A contract added as active is published at its creation.
	Add(ctx context.Context, c Contract) (int64, error)
	// Save replaces the contract with the id; its code and its time of creation stay. RECORD_NOT_FOUND;
	// RECORD_ALREADY_EXIST as in Add.
	Save(ctx context.Context, c Contract) error
	// Details lists the details of a contract in order.
	Details(ctx context.Context, contractID int64) ([]Detail, error)
	// DetailsOf lists the existing details among ids, in order.
	DetailsOf(ctx context.Context, ids []int64) ([]Detail, error)
	// AddDetail inserts a detail of an existing contract, and returns its id.
	AddDetail(ctx context.Context, d Detail) (int64, error)
	// SaveDetail replaces the detail with the id. RECORD_NOT_FOUND.
	SaveDetail(ctx context.Context, d Detail) error
	// Accepted lists the contracts that a user accepted, in the order of the contracts.
	Accepted(ctx context.Context, userID string) ([]Accept, error)
	// RemoveDetails deletes the existing details among ids. RECORD_NOT_FOUND if there is none.
	RemoveDetails(ctx context.Context, ids []int64) error
}

// Seed writes the contracts of a new installation. The caller ensures that it runs once, in one transaction.
func Seed(ctx context.Context, s Store) error {
	for _, c := range []Contract{
		{Code: "TERMS_OF_USE", Name: "Terms of use", Turkish: "Kullanım koşulları", Arabic: "شروط الاستخدام"},
		{Code: "PRIVACY", Name: "Privacy notice", Turkish: "Aydınlatma metni", Arabic: "إشعار الخصوصية"},
	} {
		c.Active = true
		if _, err := s.Add(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
