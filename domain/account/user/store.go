package user

import (
	"context"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
)

// Identifier is a client's identification of an account: exactly one of the two is set, in canonical form.
type Identifier struct {
	Phone, Mail string
	// Former is the form in which 0.9 stored the number (Former); "" if it is the same. A look-up that finds no account
	// with Phone tries it, in the same statement.
	Former string
}

// String returns the canonical text. Its keyed hash counts the wrong passwords for an unknown account.
func (i Identifier) String() string { return i.Phone + i.Mail }

// Secret is the stored part of an account's password.
type Secret struct {
	Hash     string // PHC string; "" when the account has no password
	Previous string // the one before it (D-PWD-03)
}

// Entrance holds the data for judging a login: the account, its password, and the guard of its tries. User has only
// the fields that a login needs: those of Account, with roles, networks, the day of the previous login, and the status
// with its exceptions (Demo, MustReset); the others are zero, and a rule of the login must not read them.
type Entrance struct {
	User
	Hash  string // of the password, as in Secret
	Guard password.Guard
}

// Store reads accounts. Writes go through commit.Committer as the values
// below. It is safe for concurrent use.
type Store interface {
	// Get reads an account; RECORD_NOT_FOUND if it does not exist.
	Get(ctx context.Context, id string) (User, error)
	// Hold is Get inside a transaction. It locks the account until the transaction ends, so a decision based on it is
	// still correct at the commit.
	Hold(ctx context.Context, id string) (User, error)
	// Demo lists the accounts that were seeded for development.
	Demo(ctx context.Context) ([]User, error)
	// ByPhone and ByEmail read the account with a canonical phone or address; RECORD_NOT_FOUND if none has it. former
	// is Identifier.Former.
	ByPhone(ctx context.Context, phone, former string) (User, error)
	ByEmail(ctx context.Context, mail string) (User, error)
	// Login reads the data for judging a login, in one statement that is the same for all identifiers.
	// RECORD_NOT_FOUND when no account has the identifier. The guard then belongs to the key unknown, the hash of the
	// identifier.
	Login(ctx context.Context, who Identifier, unknown string) (Entrance, error)
	// Secret reads the password of an account; RECORD_NOT_FOUND when it does not exist.
	Secret(ctx context.Context, id string) (Secret, error)
	// List returns accounts newest first, at most limit, older than the one with the id after if that is not "".
	List(ctx context.Context, after string, limit int) ([]User, error)
	// Holders lists the granted roles except RoleUser: role → ids of the accounts that have it.
	Holders(ctx context.Context) (map[string][]string, error)
	// RolesOf lists the granted roles of accounts except RoleUser: id → roles.
	RolesOf(ctx context.Context, ids []string) (map[string][]string, error)
}

// Add inserts an account with its password hash and granted roles. The unit fails with RECORD_ALREADY_EXIST when the
// id, the phone or the address is taken.
type Add struct {
	User
	PasswordHash string // PHC string; "" for an account without a password
}

func (Add) Table() string { return "users" }

// Validate refuses an account that could never be found again: phone and address must be canonical, and at least one
// must be set.
func (a Add) Validate() error {
	if a.Phone == "" && a.Email == "" {
		return fault.Invalid("phoneNumber", "a phone number or a mail address is required")
	}
	if a.Phone != "" && (len(a.Phone) < 2 || a.Phone[0] != '+' || !digits(a.Phone[1:])) {
		return fault.Invalid("phoneNumber", "is not in canonical form")
	}
	if m, err := CanonicalMail(a.Email); a.Email != "" && (err != nil || m != a.Email) {
		return fault.Invalid("email", "is not in canonical form")
	}
	return nil
}

// SetPassword replaces the password: the hash becomes the active one, and the active one the previous one. It clears
// MustReset and raises the credential version. It does not end sessions; combine it with EndSessions or session.End
// (D-AUTH-11). It is fenced by CV, so two changes cannot both replace one old password.
type SetPassword struct {
	UserID string
	CV     int64 // as the caller saw it
	Hash   string
}

func (SetPassword) Table() string { return "users" }

func (w SetPassword) Fence() (string, int64) { return w.UserID, w.CV }

// Rehash replaces the hash of an unchanged password by one with the current parameters. It takes effect only while
// the stored hash is Old; otherwise the password was changed meanwhile and nothing happens. It raises no version.
type Rehash struct{ UserID, Old, New string }

func (Rehash) Table() string { return "users" }

func (w Rehash) Row() string { return w.UserID }

// EndSessions ends every session of an account and closes every open challenge: both versions rise by one. It is
// fenced by SV. After the commit the session version is SV+1, so the accompanying change note can contain it.
type EndSessions struct {
	UserID string
	SV     int64     // as the caller saw it
	At     time.Time // when it rose; nodes that start later query by it
}

func (EndSessions) Table() string { return "users" }

func (w EndSessions) Fence() (string, int64) { return w.UserID, w.SV }

// Touch raises the credential version of an account because its phone, address, factors or filter changed
// (D-AUTH-11).
type Touch struct{ UserID string }

func (Touch) Table() string { return "users" }

func (w Touch) Row() string { return w.UserID }

// SetTOTP records in the account's row whether an authenticator is defined, and raises the credential version. It
// accompanies the write that defines or removes the authenticator. It is fenced by CV, so an account defines one only
// once.
type SetTOTP struct {
	UserID  string
	CV      int64 // as the caller saw it
	Defined bool
}

func (SetTOTP) Table() string { return "users" }

func (w SetTOTP) Fence() (string, int64) { return w.UserID, w.CV }

// SetCountries copies an account's geographic filter to its row, and raises the credential version. It accompanies
// the write that changes the records. It is fenced by CV, so two changes cannot both start from one filter.
type SetCountries struct {
	UserID    string
	CV        int64 // as the caller saw it
	Countries geo.Filter
}

func (SetCountries) Table() string { return "users" }

func (w SetCountries) Fence() (string, int64) { return w.UserID, w.CV }

// SetPush records in the account's row whether it has an active device, and raises the credential version. It
// accompanies the write that adds or removes a device. It is fenced by CV, so changes of an account's devices are
// sequential.
type SetPush struct {
	UserID string
	CV     int64 // as the caller saw it
	Owned  bool
	Handle string // User.PasskeyHandle from now on
}

func (SetPush) Table() string { return "users" }

func (w SetPush) Fence() (string, int64) { return w.UserID, w.CV }

// SetStatus sets the status. It raises the credential version, which closes all open challenges of the account;
// EndSessions ends its sessions. It is fenced by CV, so changes of the status are sequential.
type SetStatus struct {
	UserID string
	CV     int64 // as the caller saw it
	Status Status
}

func (SetStatus) Table() string { return "users" }

func (w SetStatus) Fence() (string, int64) { return w.UserID, w.CV }

// SetAMLStatus sets the result of an account's AML control.
type SetAMLStatus struct{ UserID, Status string }

func (SetAMLStatus) Table() string { return "users" }

func (w SetAMLStatus) Row() string { return w.UserID }

type SetLevel struct {
	UserID string
	Level  int
}

func (SetLevel) Table() string { return "users" }

func (w SetLevel) Row() string { return w.UserID }

// SetName replaces the name. It raises no version.
type SetName struct{ UserID, Name, Surname string }

func (SetName) Table() string { return "users" }

func (w SetName) Row() string { return w.UserID }

// SetPhone replaces the phone number by another canonical one and raises the credential version; EndSessions ends the
// sessions (D-AUTH-11). It is fenced by CV. The unit fails with RECORD_ALREADY_EXIST when another account has the
// number.
type SetPhone struct {
	UserID             string
	CV                 int64 // as the caller saw it
	CountryCode, Phone string
	Repair             bool // no node of 0.9 needs to find the account by the number any more
}

func (SetPhone) Table() string { return "users" }

func (w SetPhone) Fence() (string, int64) { return w.UserID, w.CV }

// SetMail is SetPhone for the mail address, whose ownership is not verified yet.
type SetMail struct {
	UserID string
	CV     int64 // as the caller saw it
	Mail   string
}

func (SetMail) Table() string { return "users" }

func (w SetMail) Fence() (string, int64) { return w.UserID, w.CV }

// LoggedIn records the day (UTC) of a login, for the list of active accounts, and its network. A day that is not
// later than the recorded one changes nothing.
type LoggedIn struct {
	UserID  string
	At      time.Time
	Network string // the mark of a network to remember; "" for none
}

// LoginDay returns the day (UTC) of an instant, counted from 1970-01-01.
func LoginDay(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

func (LoggedIn) Table() string { return "users" }

func (w LoggedIn) Row() string { return w.UserID }

// VerifyMail records that the account has proved to own its address. It accompanies the completion of a challenge.
// The challenge's guard on the credential version ensures that the address is still the verified one.
type VerifyMail struct{ UserID string }

func (VerifyMail) Table() string { return "users" }

func (w VerifyMail) Row() string { return w.UserID }

// Alarm records that the owner has reported a challenge that the owner did not start (D-EXT-09).
type Alarm struct {
	UserID string
	At     time.Time
}

func (Alarm) Table() string { return "users" }

func (w Alarm) Row() string { return w.UserID }

// SetWithdrawProhibited blocks an account from withdrawing, or allows it again.
type SetWithdrawProhibited struct {
	UserID     string
	Prohibited bool
}

func (SetWithdrawProhibited) Table() string { return "users" }

func (w SetWithdrawProhibited) Row() string { return w.UserID }

// Grant gives an account a role; granting it twice changes nothing.
type Grant struct {
	UserID, Role string
	At           time.Time
}

func (Grant) Table() string { return "user_role" }

// Revoke takes a role from an account; revoking one that it does not have changes nothing.
type Revoke struct{ UserID, Role string }

func (Revoke) Table() string { return "user_role" }
