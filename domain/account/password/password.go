// Package password owns the handling of passwords: the policy (D-PWD-05), hashing within bounded memory under many
// logins, and the limits of guessing (D-GEN-14).
//
// The one idea: a hash is the most expensive operation available without a credential. So it runs in a fixed number
// of slots over reused memory. A try first gets a place in the queue, then counts as wrong in the database, and is
// hashed last. A right try is refunded.
//
// Start reading at Policy, then hasher.go (slots and queue), package argon2id (the function), guard.go
// (the rule of wrong tries, a pure value) and guards.go (its keeper).
package password

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/fault"
)

// maxBytes bounds a password before it is normalised: the longest password of the policy, in letters of four bytes
// with combining marks.
const maxBytes = 4096

// Policy holds the rules for a new password.
type Policy struct {
	MinChars, MaxChars int // code points after NFC
}

// DefaultPolicy is the policy of D-PWD-05.
func DefaultPolicy() Policy { return Policy{MinChars: 8, MaxChars: 128} }

// Personal holds the user's data that a password must not equal.
type Personal struct {
	Phone    string // canonical
	DialCode string // the first digits of Phone
	Mail     string // canonical
}

// Normalize returns the form in which a password is counted and hashed: NFC, so that the same letters typed on
// another system are the same password. Nothing is trimmed or cut. ok is false for text that is not UTF-8 or is
// longer than any allowed password.
func Normalize(password string) (normal string, ok bool) {
	if len(password) > maxBytes || !utf8.ValidString(password) {
		return "", false
	}
	return norm.NFC.String(password), true
}

// Check validates a new password.
//
// Errors: INVALID_FIELD of the field password. The message names the rule and never the password.
func (p Policy) Check(password string, who Personal) error {
	normal, ok := Normalize(password)
	if !ok {
		return fault.Invalid("password", "must be text of at most %d characters", p.MaxChars)
	}
	switch n := utf8.RuneCountInString(normal); {
	case n < p.MinChars:
		return fault.Invalid("password", "must have at least %d characters", p.MinChars)
	case n > p.MaxChars:
		return fault.Invalid("password", "must have at most %d characters", p.MaxChars)
	case strings.TrimSpace(normal) == "": // D-GEN-10
		return fault.Invalid("password", "must not be blank")
	case who.owns(normal):
		return fault.Invalid("password", "must not be your phone number or mail address")
	case Common(normal):
		return fault.Invalid("password", "is one of the most common passwords")
	}
	return nil
}

// owns reports whether the password is the phone number, in any of its usual spellings, or the mail address.
func (w Personal) owns(password string) bool {
	if w.Mail != "" && strings.EqualFold(password, w.Mail) {
		return true
	}
	if w.Phone == "" {
		return false
	}
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -.()+/", r) {
			return -1
		}
		return r
	}, password)
	digits = strings.TrimLeft(digits, "0")
	full := strings.TrimPrefix(w.Phone, "+")
	return digits == full || digits == strings.TrimLeft(strings.TrimPrefix(full, w.DialCode), "0")
}
