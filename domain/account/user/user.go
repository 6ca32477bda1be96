// Package user owns the account: the data of a user, the identification of a user at login, and two version counters.
// They revoke everything issued to the user at once (decisions D-AUTH-01, D-AUTH-11).
//
// The one idea: an account has two versions. Every token contains SV, so raising it ends every session. Every
// challenge contains CV, so raising it closes every challenge started with outdated credentials. A request needs no
// other data of the account.
//
// Start reading at User, then canonical.go (one spelling per phone number and address, D-PWD-07) and store.go (the
// contract and the writes).
package user

import (
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/geo"
)

// Status is the status of an account. The values are code lists that an operator may extend (D-GEN-17); only Active
// can log in.
type Status string

// The statuses of a new installation.
const (
	Active  Status = "active"
	Passive Status = "passive"
	Blocked Status = "blocked"
	Closed  Status = "closed"
)

// Type is the type of an account: a person or a company, in the spelling of the interface.
type Type string

// The types.
const (
	Individual Type = "bireysel"
	Corporate  Type = "kurumsal"
)

// The built-in roles. Every account has RoleUser without a row for it (D-AUTH-03).
const (
	RoleUser  = "user"
	RoleAdmin = "admin"
)

// The initial values of a new account (D-USR-01).
const (
	WaitingApproval = "waitingApproval" // kycConfirm and addressConfirmed
	NotRisky        = "notRisky"        // amlStatus
)

// User is an account. Phone and Email are canonical (see canonical.go), and "" if the account has none.
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
	IdentityHash     string // keyed hash of the identity number; "" if unknown
	TaxNumber        string // "" if unknown
	BirthDate        string // YYYY-MM-DD; "" if unknown
	SV               int64  // session version: a token with a smaller one is revoked
	CV               int64  // credential version: a challenge with another one is closed
	// Countries are the countries from which the account may be used; SetCountries keeps them equal to the records.
	Countries geo.Filter
	TOTP      bool // an authenticator is defined; SetTOTP maintains it
	Push      bool // an active device is registered; SetPush maintains it
	// PasskeyHandle is the random name of the account inside its passkeys, base64url; "" for an account without a
	// passkey. SetPush maintains it.
	PasskeyHandle string
	// WithdrawProhibited blocks the account from withdrawing.
	WithdrawProhibited bool
	MustReset          bool // the password is refused until the user sets a new one (D-COR-03)
	Campaigns          Campaigns
	Networks           Networks
	LastLoginDay       int64             // LoginDay of the last login; 0 before the first
	FactorsOff         challenge.Factors // second factors that are switched off (D-2FA-13)
	Demo               bool              // seeded for development; cannot log in elsewhere
	// MoneyVersion rises with every change of what decides whether the account may move money: status, prohibition, AML
	// status, level, roles, credentials, alarms (D-POL-01). commit.UserMoney guards it.
	MoneyVersion int64
	// CredentialsAt is the instant of the last change of password, phone, address or factors, and AlarmedAt that of the
	// owner's last alarm; zero for none.
	CredentialsAt, AlarmedAt time.Time
	CreatedAt                time.Time
}

// Campaigns are the permitted channels of campaigns; notifications inside the account are always permitted.
type Campaigns struct{ SMS, Mail, Push bool }

// New returns an active account with the initial values.
func New(id string, now time.Time) User {
	return User{ID: id, Status: Active, Type: Individual, KYCConfirm: WaitingApproval, AMLStatus: NotRisky,
		AddressConfirmed: WaitingApproval, SV: 1, CV: 1,
		Campaigns: Campaigns{SMS: true, Mail: true, Push: true}, CreatedAt: now}
}

// Active reports whether the account may be used at all.
func (u User) Active() bool { return u.Status == Active }

// AllRoles returns the roles in the account's tokens: RoleUser and the granted ones. They inform clients; permissions
// never depend on them (D-AUTH-03).
func (u User) AllRoles() []string {
	return append([]string{RoleUser}, slices.DeleteFunc(slices.Clone(u.Roles),
		func(r string) bool { return r == RoleUser })...)
}

// Account returns the data that a challenge needs. An account owns SMS with a phone that is no placeholder, and MAIL
// with an address, verified or not. It owns TOTP while an authenticator is defined, and PUSH while a device is
// registered (D-2FA-32).
func (u User) Account() challenge.Account {
	return challenge.Account{UserID: u.ID, Phone: u.Reachable(), Dial: u.CountryCode, Mail: u.Email, TOTP: u.TOTP,
		Push: u.Push, Passkeys: u.PasskeyHandle != "", CV: u.CV, SV: u.SV, Language: u.Language, Countries: u.Countries,
		Off: u.FactorsOff}
}
