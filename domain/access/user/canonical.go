package user

import (
	"cmp"
	"strings"

	"castellan/domain/kit/fault"
)

// Lengths of the parts of a number (E.164: at most 15 digits in all) and of an
// address (RFC 5321).
const (
	maxDialDigits   = 4 // 1684 for 1-684 is common
	minNumberDigits = 4
	maxPhoneDigits  = 15
	maxMailBytes    = 254
)

// Canonical returns the one spelling of a phone number: "+", dialling code, number. The dialling code may start with
// "+" or zeros ("90", "+90", "0090" and "090" are one code). In the number, spaces, dashes, dots and brackets are
// dropped, and then one leading 0 (D-PWD-07). Two spellings of a number give one result, so that limits and
// uniqueness hold whatever the client sends.
//
// The rule checks only digits. The SMS shows whether a number is in use, and a table of every country's plans would
// cost megabytes.
//
// Errors: INVALID_FIELD naming countryCode or phoneNumber.
func Canonical(countryCode, phone string) (e164 string, err error) {
	dial, err := DialCode(countryCode)
	if err != nil {
		return "", err
	}
	return international(dial, phone)
}

// international joins the canonical dialling code and a number.
func international(dial, phone string) (e164 string, err error) {
	number := strings.Map(separator, strings.TrimSpace(phone))
	number = strings.TrimPrefix(number, "0")
	switch {
	case number == "" || !digits(number):
		return "", fault.Invalid("phoneNumber", "must be digits, without the country code")
	case len(number) < minNumberDigits || len(dial)+len(number) > maxPhoneDigits:
		return "", fault.Invalid("phoneNumber", "is too short or too long")
	}
	return "+" + dial + number, nil
}

// separator drops the characters that divide the digits of a number (strings.Map).
func separator(r rune) rune {
	switch r {
	case ' ', '-', '.', '(', ')', '[', ']', '/', '\u00a0', '\u2010', '\u2011', '\u2012', '\u2013':
		return -1
	}
	return r
}

// Identify reads the client's identification of an account: a dialling code and a number, or a mail address; nil is
// not sent. The problems name every sent part that is malformed. It does not check for missing or contradictory
// parts; the caller must do so before it uses the Identifier.
func Identify(countryCode, phone, mail *string) (who Identifier, problems []fault.Problem) {
	read := func(canonical string, err error) string {
		if e, ok := err.(*fault.Error); ok {
			problems = append(problems, e.Fields...)
		}
		return canonical
	}
	dial := ""
	if countryCode != nil {
		dial = read(DialCode(*countryCode))
	}
	if phone != nil {
		who.Phone = read(international(cmp.Or(dial, "1"), *phone)) // a malformed code is a problem of its own
	}
	if mail != nil {
		who.Mail = read(CanonicalMail(*mail))
	}
	return who, problems
}

// DialCode returns the one spelling of a dialling code: digits without "+" and leading zeros.
//
// Errors: INVALID_FIELD naming countryCode.
func DialCode(s string) (string, error) {
	s = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(s), "+"), "0")
	if s == "" || len(s) > maxDialDigits || !digits(s) {
		return "", fault.Invalid("countryCode", "must be a dialling code such as 90")
	}
	return s, nil
}

// CanonicalMail returns the one spelling of a mail address: trimmed and in lower case. Only ASCII is accepted:
// look-alike letters of other scripts that fold to one account are a known way to take it over.
//
// Errors: INVALID_FIELD naming email.
func CanonicalMail(s string) (string, error) {
	s = strings.TrimSpace(s)
	for _, r := range s { // before folding: ToLower turns some letters into ASCII ones
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`<>()[]\,;:"`, r) {
			return "", fault.Invalid("email", "must be a mail address")
		}
	}
	s = strings.ToLower(s)
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || domain == "" || len(s) > maxMailBytes || strings.Contains(domain, "@") ||
		strings.Trim(domain, ".") != domain || strings.Contains(domain, "..") {
		return "", fault.Invalid("email", "must be a mail address")
	}
	return s, nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
