package user

import (
	"context"
	"time"

	"castellan/domain/access/password"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
)

// Identifier is how a client names an account: exactly one of the two is set,
// in canonical form.
type Identifier struct{ Phone, Mail string }

// String is the canonical text, by whose keyed hash the wrong passwords for an
// unknown account are counted.
func (i Identifier) String() string { return i.Phone + i.Mail }

// Secret is the stored part of an account's password.
type Secret struct {
	Hash     string // PHC string; "" when the account has no password
	Previous string // the one before it (D-PWD-03)
}

// Entrance is what a login is judged by: the account, its password, and the
// guard of the tries for it.
type Entrance struct {
	User
	Secret
	Guard password.Guard
}

// Store reads accounts. Writes go through commit.Committer as the values
// below. It is safe for concurrent use.
type Store interface {
	// Get reads an account; RECORD_NOT_FOUND when there is none.
	Get(ctx context.Context, id string) (User, error)
	// Hold is Get inside a transaction. Until that ends nobody else holds or changes
	// the account, so that what is decided on it is still true when it commits.
	Hold(ctx context.Context, id string) (User, error)
	// Demo lists the accounts that were seeded for development.
	Demo(ctx context.Context) ([]User, error)
	// ByPhone and ByEmail read the account with a canonical phone or address;
	// RECORD_NOT_FOUND when there is none.
	ByPhone(ctx context.Context, phone string) (User, error)
	ByEmail(ctx context.Context, mail string) (User, error)
	// Login reads what a login is judged by, in one statement that is the same
	// for everybody; RECORD_NOT_FOUND when there is no such account. The guard is
	// then that of the key nobody, which stands for the identifier.
	Login(ctx context.Context, who Identifier, nobody string) (Entrance, error)
	// Secret reads the password of an account; RECORD_NOT_FOUND when there is
	// no such account.
	Secret(ctx context.Context, id string) (Secret, error)
	// List returns accounts newest first, at most limit, older than the one
	// with the id after where that is not "".
	List(ctx context.Context, after string, limit int) ([]User, error)
	// Holders lists the granted roles, RoleUser left out: role → ids of the
	// accounts that have it.
	Holders(ctx context.Context) (map[string][]string, error)
	// RolesOf lists the granted roles of accounts, RoleUser left out: id → roles.
	RolesOf(ctx context.Context, ids []string) (map[string][]string, error)
}

// Add inserts an account with its password hash and granted roles. The unit is
// refused with RECORD_ALREADY_EXIST when the id, the phone or the address is
// taken.
type Add struct {
	User
	PasswordHash string // PHC string; "" for an account without a password
}

func (Add) Table() string { return "users" }

// Validate refuses an account that could never be found again: phone and
// address must be canonical and at least one of them present.
func (a Add) Validate() error {
	if a.Phone == "" && a.Email == "" {
		return fault.Invalid("phoneNumber", "a phone number or a mail address is needed")
	}
	if a.Phone != "" && (len(a.Phone) < 2 || a.Phone[0] != '+' || !digits(a.Phone[1:])) {
		return fault.Invalid("phoneNumber", "is not in canonical form")
	}
	if m, err := CanonicalMail(a.Email); a.Email != "" && (err != nil || m != a.Email) {
		return fault.Invalid("email", "is not in canonical form")
	}
	return nil
}

// SetPassword replaces the password: the hash becomes the active one, the
// active one the previous one, MustReset ends, and the credential version rises. It does not
// end sessions; EndSessions or session.End go beside it (D-AUTH-11). It is
// fenced by CV, so that two changes cannot both be made of one old password.
type SetPassword struct {
	UserID string
	CV     int64 // as the caller saw it
	Hash   string
}

func (SetPassword) Table() string { return "users" }

func (w SetPassword) Fence() (string, int64) { return w.UserID, w.CV }

// Rehash replaces the hash of an unchanged password by one of the present
// parameters. It takes effect only while the stored hash still is Old; if it
// is not, the password was changed meanwhile and nothing happens. No version
// rises.
type Rehash struct{ UserID, Old, New string }

func (Rehash) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w Rehash) Row() string { return w.UserID }

// EndSessions ends every session of an account, and closes every challenge
// that is open: both versions rise by one. It is fenced by SV: after the
// commit the session version is SV+1, so that the change note beside it can
// say so.
type EndSessions struct {
	UserID string
	SV     int64     // as the caller saw it
	At     time.Time // when it rose; nodes that start later ask by it
}

func (EndSessions) Table() string { return "users" }

func (w EndSessions) Fence() (string, int64) { return w.UserID, w.SV }

// Touch raises the credential version of an account because a phone, an
// address, a factor or a filter of it changed (D-AUTH-11).
type Touch struct{ UserID string }

func (Touch) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w Touch) Row() string { return w.UserID }

// SetTOTP says in the account's row whether an authenticator is defined, beside
// the write that defines or removes it, and raises the credential version. It
// is fenced by CV, so that an account defines one once.
type SetTOTP struct {
	UserID  string
	CV      int64 // as the caller saw it
	Defined bool
}

func (SetTOTP) Table() string { return "users" }

func (w SetTOTP) Fence() (string, int64) { return w.UserID, w.CV }

// SetCountries repeats an account's geographic filter in its row, beside the
// write that changes the records, and raises the credential version. It is
// fenced by CV, so that two changes cannot both be made of one filter.
type SetCountries struct {
	UserID    string
	CV        int64 // as the caller saw it
	Countries geo.Filter
}

func (SetCountries) Table() string { return "users" }

func (w SetCountries) Fence() (string, int64) { return w.UserID, w.CV }

// SetPush says in the account's row whether it has an active device, beside the
// write that adds or removes one, and raises the credential version. It is
// fenced by CV, so that changes of an account's devices come one after another.
type SetPush struct {
	UserID string
	CV     int64 // as the caller saw it
	Owned  bool
}

func (SetPush) Table() string { return "users" }

func (w SetPush) Fence() (string, int64) { return w.UserID, w.CV }

// SetStatus sets the status. The credential version rises, so that whatever
// the account had begun is closed; ending its sessions is EndSessions' part. It is
// fenced by CV, so that changes of the status come one after another.
type SetStatus struct {
	UserID string
	CV     int64 // as the caller saw it
	Status Status
}

func (SetStatus) Table() string { return "users" }

func (w SetStatus) Fence() (string, int64) { return w.UserID, w.CV }

// SetAMLStatus sets what the AML control says of an account.
type SetAMLStatus struct{ UserID, Status string }

func (SetAMLStatus) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetAMLStatus) Row() string { return w.UserID }

// SetLevel gives an account a level.
type SetLevel struct {
	UserID string
	Level  int
}

func (SetLevel) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetLevel) Row() string { return w.UserID }

// SetName replaces the name. No version rises.
type SetName struct{ UserID, Name, Surname string }

func (SetName) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetName) Row() string { return w.UserID }

// SetPhone replaces the phone number by another canonical one and raises the
// credential version; ending the sessions is EndSessions' part (D-AUTH-11). It is
// fenced by CV. The unit is refused with RECORD_ALREADY_EXIST when another account
// has the number.
type SetPhone struct {
	UserID             string
	CV                 int64 // as the caller saw it
	CountryCode, Phone string
}

func (SetPhone) Table() string { return "users" }

func (w SetPhone) Fence() (string, int64) { return w.UserID, w.CV }

// SetMail is SetPhone for the mail address, which nobody has shown to own yet.
type SetMail struct {
	UserID string
	CV     int64 // as the caller saw it
	Mail   string
}

func (SetMail) Table() string { return "users" }

func (w SetMail) Fence() (string, int64) { return w.UserID, w.CV }

// LoggedIn records the day (UTC) of a login, by which active accounts are found, and the
// network it came from. A day that is not later than the recorded one changes nothing.
type LoggedIn struct {
	UserID  string
	At      time.Time
	Network string // the mark of a network to remember; "" for none
}

// LoginDay is the day (UTC) of an instant, counted from 1970-01-01.
func LoginDay(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

func (LoggedIn) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w LoggedIn) Row() string { return w.UserID }

// VerifyMail says that the account has shown to own its address. It goes with
// the completion of a challenge, whose guard on the credential version sees to
// it that the address is still the one that was asked.
type VerifyMail struct{ UserID string }

func (VerifyMail) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w VerifyMail) Row() string { return w.UserID }

// SetWithdrawProhibited keeps an account from withdrawing, or lets it again.
type SetWithdrawProhibited struct {
	UserID     string
	Prohibited bool
}

func (SetWithdrawProhibited) Table() string { return "users" }

// Row tells the writer which row it changes.
func (w SetWithdrawProhibited) Row() string { return w.UserID }

// Grant gives an account a role; granting it twice changes nothing.
type Grant struct {
	UserID, Role string
	At           time.Time
}

func (Grant) Table() string { return "user_role" }

// Revoke takes a role from an account; taking one that it has not changes
// nothing.
type Revoke struct{ UserID, Role string }

func (Revoke) Table() string { return "user_role" }
