// Package registration makes accounts: other services add them, one by one or in bulk, or users sign up (decision
// D-INT-07).
//
// The one idea: an account is complete when it exists. It commits with its external id, or with the contracts that its
// owner accepted. A phone number or a mail address has at most one account.
//
// Start reading at Service.Add; bulk.go is the job, signup.go the sign-up of users.
package registration

import (
	"cmp"
	"context"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/legible"
)

// The audit names of this package.
const (
	ActionAdd  = "USER_ADD"
	ActionBulk = "USER_ADD_BULK"
)

// Newcomer describes an account that another service adds. Texts are as sent; Canonical returns their canonical form.
type Newcomer struct {
	ExternalID  string    `json:"externalId"`
	CountryCode string    `json:"countryCode"`
	Phone       string    `json:"phoneNumber"` // without the dialling code; in canonical form with it
	Email       string    `json:"email"`       // "" for none
	Name        string    `json:"name"`
	Surname     string    `json:"surname"`
	Language    string    `json:"language"` // "" for the installation's default
	Type        user.Type `json:"type"`     // "" for a person
}

// Canonical returns the newcomer in canonical form, so that equal requests are equal values.
//
// Errors: INVALID_FIELD with every invalid field.
func (n Newcomer) Canonical() (Newcomer, error) {
	var ps fault.Problems
	CheckExternalID(&ps, "externalId", n.ExternalID)
	var mail *string
	if n.Email != "" {
		mail = &n.Email
	}
	is, more := user.Identify(&n.CountryCode, &n.Phone, mail)
	ps = append(ps, more...)
	placeholder := is.Phone != "" && (user.User{Phone: is.Phone}).Reachable() == ""
	ps.Require(!placeholder, "phoneNumber", "must be digits, without the country code")
	names := user.CheckNames(&n.Name, &n.Surname)
	ps.Require(n.Name != "", "name", "must not be blank")
	ps = append(ps, names...)
	n.Type = cmp.Or(n.Type, user.Individual)
	if err := fault.All(ps); err != nil {
		return n, err
	}
	n.CountryCode, _ = user.DialCode(n.CountryCode) // validated by Identify
	n.Phone, n.Email = is.Phone, is.Mail
	return n, nil
}

// CheckExternalID adds the problem of an external id and reports whether it is valid.
func CheckExternalID(ps *fault.Problems, field, id string) bool {
	before := len(*ps)
	if strings.TrimSpace(id) == "" {
		ps.Require(false, field, "must not be blank")
	} else if len(id) > integration.MaxExternalID {
		ps.Require(false, field, "is too long")
	} else {
		ps.Require(legible.Valid(id), field, "must not contain control characters")
	}
	return len(*ps) == before
}

// account returns the new account of a newcomer in canonical form.
func (n Newcomer) account(u user.User) user.User {
	u.CountryCode, u.Phone, u.Email = n.CountryCode, n.Phone, n.Email
	u.Name, u.Surname, u.Language, u.Type = n.Name, n.Surname, n.Language, n.Type
	return u
}

// Record is an account as other services see it. ExternalID is "" for an account that was not added by a service.
type Record struct {
	user.User
	ExternalID string
}

// Service adds accounts for other services. All fields are required.
type Service struct {
	Users    user.Store
	External integration.Store
	Jobs     *job.Service
	Changes  admin.Changes // without a topic: no node caches accounts
}

// taken returns the refusal of a phone number or a mail address that has an account.
func taken() error {
	return fault.New(fault.RecordAlreadyExist, "the phone number or the mail address already has an account")
}

// Add makes the account of a newcomer, or returns the one that was made under its external id. The account is active
// and has no password: a password reset sets the first one.
//
// Errors: INVALID_FIELD with every invalid field; RECORD_ALREADY_EXIST if the phone number or the mail address has
// another account, also under concurrent calls; INVALID_STATE if the external id was used with another body.
func (s *Service) Add(ctx context.Context, by audit.By, n Newcomer) (Record, error) {
	n, err := n.Canonical()
	if err != nil {
		return Record{}, err
	}
	now := s.Changes.Now()
	made := n.account(user.New(id.New(now), now))
	claim := n.claim(made)
	record, _, err := integration.Once(ctx, s.External, claim,
		func(ctx context.Context, userID string) (Record, error) {
			u, err := s.Users.Get(ctx, userID)
			return Record{u, n.ExternalID}, err
		},
		func(ctx context.Context) (Record, error) {
			err := s.Changes.Do(ctx, by, ActionAdd, func(context.Context) (admin.Done, error) {
				return admin.Done{Target: made.ID, UserID: made.ID,
					Writes: n.writes(made)}, nil
			})
			return Record{made, n.ExternalID}, err
		})
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		err = taken()
	}
	return record, err
}

// claim returns the claim of a newcomer in canonical form on its account.
func (n Newcomer) claim(made user.User) integration.Claim {
	return integration.Claim{Kind: integration.Users, ExternalID: n.ExternalID, Digest: integration.Digest(n),
		RecordID: made.ID, At: made.CreatedAt}
}

// writes returns the writes that make an account.
func (n Newcomer) writes(made user.User) []commit.Write {
	return []commit.Write{integration.Add{Claim: n.claim(made)}, user.Add{User: made}}
}

// Import returns the account of a user of another platform, and the writes of Add for it. An import commits many
// accounts at once. made has the id, the time and other data of that platform, such as the level; the fields of the
// newcomer replace its own. The import ensures that each account counts once.
//
// Errors: INVALID_FIELD with every invalid field.
func (n Newcomer) Import(by audit.By, made user.User) (user.User, []commit.Write, error) {
	n, err := n.Canonical()
	if err != nil {
		return made, nil, err
	}
	made = n.account(made)
	return made, append(n.writes(made), by.Did(audit.Record{At: made.CreatedAt, UserID: made.ID, Action: ActionAdd,
		Target: made.ID})), nil
}

// Get returns an account with its external id. RECORD_NOT_FOUND.
func (s *Service) Get(ctx context.Context, userID string) (Record, error) {
	u, err := s.Users.Get(ctx, userID)
	if err != nil {
		return Record{}, err
	}
	claim, err := s.External.ClaimOf(ctx, integration.Users, userID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = nil
	}
	return Record{u, claim.ExternalID}, err
}
