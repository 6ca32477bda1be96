// Package user is the account: who a user is to the service, how the user is
// found when they log in, and the two counters by which everything that was
// issued to them can be taken back at once (decisions D-AUTH-01, D-AUTH-11).
//
// The one idea: an account has two versions. SV stands in every token, so that
// raising it ends every session; CV stands in every challenge, so that raising
// it closes everything that was begun with credentials that no longer hold.
// Nothing else of an account is needed to judge a request.
//
// Start reading at User, then canonical.go (one spelling per phone number and
// address, D-PWD-07) and store.go (the contract and the writes).
package user

import (
	"slices"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/kit/geo"
)

// Status of an account. The values are code lists that an operator may extend
// (D-GEN-17); only Active can log in.
type Status string

// The statuses every installation starts with.
const (
	Active  Status = "active"
	Passive Status = "passive"
	Blocked Status = "blocked"
	Closed  Status = "closed"
)

// Type of an account: a person or a company. The spellings are the
// interface's.
type Type string

// The types.
const (
	Individual Type = "bireysel"
	Corporate  Type = "kurumsal"
)

// The roles that exist from the start. Every account has RoleUser without a
// row that says so (D-AUTH-03).
const (
	RoleUser  = "user"
	RoleAdmin = "admin"
)

// What a new account starts with (D-USR-01).
const (
	WaitingApproval = "waitingApproval" // kycConfirm and addressConfirmed
	NotRisky        = "notRisky"        // amlStatus
)

// User is an account. Phone and Email are canonical (see canonical.go) and ""
// where the account has none.
type User struct {
	ID            string
	Name          string
	Surname       string
	Email         string
	EmailVerified bool
	CountryCode   string // dialling code, digits only
	Phone         string // "+905321234567", dialling code included
	Language      string // tr, en or ar; "" for the installation's default
	Status        Status
	Type          Type
	Roles         []string // beyond RoleUser, sorted
	KYCConfirm    string
	// AddressConfirmed is waitingApproval, manuelApproved or rejected (D-KYC-05).
	AddressConfirmed string
	AMLStatus        string
	Level            int
	IdentityHash     string // keyed hash of the identity number; "" where it is not known
	TaxNumber        string // "" where it is not known
	BirthDate        string // YYYY-MM-DD; "" where it is not known
	SV               int64  // session version: a token with a smaller one is revoked
	CV               int64  // credential version: a challenge with another one is closed
	// Countries are those from which it may be used; SetCountries keeps it true
	// to the records.
	Countries geo.Filter
	TOTP      bool // an authenticator is defined; SetTOTP keeps it true to that
	Push      bool // an active device is registered; SetPush keeps it true to that
	// WithdrawProhibited keeps the account from withdrawing.
	WithdrawProhibited bool
	MustReset          bool // its password is refused until it is set anew (D-COR-03)
	Campaigns          Campaigns
	Networks           Networks
	LastLoginDay       int64             // LoginDay of the last login; 0 before the first
	FactorsOff         challenge.Factors // second factors that are switched off (D-2FA-13)
	Demo               bool              // seeded for development; cannot log in outside of it
	CreatedAt          time.Time
}

// Campaigns are the channels over which campaigns may come; in the account itself
// they always may.
type Campaigns struct{ SMS, Mail, Push bool }

// New returns an active account with the values every account starts with.
func New(id string, now time.Time) User {
	return User{ID: id, Status: Active, Type: Individual, KYCConfirm: WaitingApproval, AMLStatus: NotRisky,
		AddressConfirmed: WaitingApproval, SV: 1, CV: 1,
		Campaigns: Campaigns{SMS: true, Mail: true, Push: true}, CreatedAt: now}
}

// Active reports whether the account may be used at all.
func (u User) Active() bool { return u.Status == Active }

// AllRoles are the roles a token of the account names: RoleUser and the
// granted ones. They inform clients; what a caller may do is never judged by
// them (D-AUTH-03).
func (u User) AllRoles() []string {
	return append([]string{RoleUser}, slices.DeleteFunc(slices.Clone(u.Roles),
		func(r string) bool { return r == RoleUser })...)
}

// Account is what a challenge needs to know of the user: an account owns SMS
// with a phone that is no placeholder, MAIL with an address, verified or not, TOTP
// while an authenticator is defined, and PUSH while a device is registered
// (D-2FA-32).
func (u User) Account() challenge.Account {
	return challenge.Account{UserID: u.ID, Phone: u.Reachable(), Dial: u.CountryCode, Mail: u.Email, TOTP: u.TOTP,
		Push: u.Push, CV: u.CV, SV: u.SV, Language: u.Language, Countries: u.Countries,
		Off: u.FactorsOff}
}
