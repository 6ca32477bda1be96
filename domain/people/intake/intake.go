// Package intake takes the users of another service over, with their passwords and authenticators, and writes users to
// a file (D-AUTH-19).
//
// The one idea: a batch of lines is one unit. Its users, its refused lines, the cursor and the counters commit
// together, fenced by the version of the import's row. So an import that was killed continues behind its last batch,
// without a user twice and without a lost line.
//
// Start reading at Service.Run. Entry is a user as every format gives it; source.go and the files of the formats read
// them; export.go writes them.
package intake

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/account/password/legacy"
	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/people/registration"
	"castellan/domain/proof/totp"
)

// Entry is a user of another service. Texts are as the file has them.
type Entry struct {
	ExternalID    string
	Email         string
	EmailVerified bool
	CountryCode   string
	Phone         string // without the dialling code
	International string // in place of CountryCode and Phone: "+905321234567"
	Name          string
	Surname       string
	Language      string // "" for the installation's default
	Status        string // "" for active
	Hash          Hash
	TOTP          string // base32; "" for none
	MustReset     bool   // the password is not taken: the user must set a new one
	// Notes say what else of the user is not taken. They contain no text of the file.
	Notes []string
	// Other means that the entry is no user: only its notes count.
	Other bool
}

func (e *Entry) note(text string) {
	if !slices.Contains(e.Notes, text) {
		e.Notes = append(e.Notes, text)
	}
}

// Hash is the password of an entry: none, a hash of another service, or one that Castellan stored.
type Hash struct {
	Foreign *legacy.Hash
	Stored  string
	Beyond  string // why a well-formed hash cannot be computed; "" for none
}

// Record is one line of a file: an entry, or the reason why the line is refused.
type Record struct {
	Line int64 // of the file, from 1; of a JSON document, the number of the user
	Entry
	Refused string // "" for none; it contains no text of the file
}

// Bounds of the texts of an entry, in characters.
const maxName = 200

// languages are the languages of the service.
var languages = []string{"", "tr", "en", "ar"}

// account returns the account of an entry in canonical form and the secret of its authenticator.
//
// Errors: INVALID_FIELD with every invalid field.
func (e Entry) account(id string, now time.Time, statuses []string) (u user.User, secret []byte, err error) {
	u = user.New(id, now)
	var ps fault.Problems
	if e.Email != "" {
		u.Email, err = user.CanonicalMail(e.Email)
		ps.Join(err)
	}
	u.EmailVerified = e.EmailVerified && u.Email != ""
	switch {
	case e.International != "":
		u.CountryCode, u.Phone, err = user.International(e.International)
		ps.Join(err)
	case e.Phone != "" || e.CountryCode != "":
		u.Phone, err = user.Canonical(e.CountryCode, e.Phone)
		ps.Join(err)
		u.CountryCode, _ = user.DialCode(e.CountryCode)
	}
	placeholder := u.Phone != "" && u.Reachable() == ""
	ps.Require(!placeholder, "phoneNumber", "must be digits, without the country code")
	ps.Require(e.Email != "" || e.Phone != "" || e.International != "", "email", "or a phone number is required")
	u.Name, u.Surname, u.Language = e.Name, e.Surname, e.Language
	ps = append(ps, user.CheckNames(&u.Name, &u.Surname)...)
	ps.Require(max(utf8.RuneCountInString(u.Name), utf8.RuneCountInString(u.Surname)) <= maxName, "name", "is too long")
	if e.ExternalID != "" {
		registration.CheckExternalID(&ps, "externalId", e.ExternalID)
	}
	ps.Require(slices.Contains(languages, e.Language), "language", "must be tr, en or ar")
	if e.Status != "" {
		u.Status = user.Status(e.Status)
		ps.Require(slices.Contains(statuses, e.Status), "status", "must be a status of an account")
	}
	if e.TOTP != "" {
		secret, err = totp.ParseSecret(e.TOTP)
		ps.Join(err)
		u.TOTP = err == nil
	}
	return u, secret, fault.All(ps)
}

// reason returns the text of a refusal. It contains no text of the file.
func reason(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) || len(f.Fields) == 0 {
		return err.Error()
	}
	texts := make([]string, len(f.Fields))
	for i, p := range f.Fields {
		texts[i] = p.Field + " " + strings.TrimPrefix(p.Message, p.Field+": ")
	}
	return strings.Join(texts, "; ")
}

// hashReason returns the refusal of an unreadable hash.
func hashReason(err error) string { return "hash: " + err.Error() }

// state returns the status of an account that the other service may have disabled.
func state(disabled bool) string {
	if disabled {
		return string(user.Passive)
	}
	return string(user.Active)
}

// shortLanguage returns the language of a locale such as en-GB; "" for one that the service does not have.
func shortLanguage(locale string) string {
	short := strings.ToLower(locale)
	if i := strings.IndexAny(short, "-_"); i >= 0 {
		short = short[:i]
	}
	if slices.Contains(languages, short) {
		return short
	}
	return ""
}

// divided divides a full name at its last space.
func divided(full string) (name, surname string) {
	words := strings.Fields(full)
	if len(words) < 2 {
		return strings.Join(words, " "), ""
	}
	return strings.Join(words[:len(words)-1], " "), words[len(words)-1]
}
