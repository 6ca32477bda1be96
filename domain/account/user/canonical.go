package user

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/kit/numbering"
)

// Lengths of the parts of a number (E.164: at most 15 digits in all) and of an
// address (RFC 5321).
const (
	maxDialDigits   = 4 // 1684 for 1-684 is common
	minNumberDigits = 4
	maxPhoneDigits  = 15
	maxMailBytes    = 254
)

// Canonical returns the one spelling of a phone number: "+", dialling code, number (D-PWD-07). The dialling code may
// start with "+" or zeros ("90", "+90", "0090" and "090" are one code). Digits of every script are read. Blanks,
// invisible marks, dashes, dots, slashes and brackets are dropped.
//
// A number that begins with "+" or "00" and the dialling code is in international form and never changed. Any other is
// a national number: the prefix of the country is dropped, and the country must have numbers of that length. Two
// spellings of a number give one result, so that limits and uniqueness hold whatever the client sends. The rule does
// not check whether a number is in use; the SMS shows it.
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
	written := NumberText(phone)
	number, full := strings.CutPrefix(written, "+"+dial)
	if !full {
		number, full = strings.CutPrefix(written, "00"+dial)
	}
	switch {
	case full && digits(number):
		if code, rest, plan := numbering.Split(dial + number); plan == nil || code != dial || plan.Possible(rest) {
			return e164Of(dial, number)
		}
		return "", wrongLength()
	case written == "" || !digits(written):
		return "", fault.Invalid("phoneNumber", "must be digits, without the country code")
	}
	code, area, plan := numbering.Split(dial)
	switch {
	case plan == nil: // no country has the code
		return e164Of(dial, written)
	case dial == code:
		if number, ok := plan.National(written); ok {
			return e164Of(dial, number)
		}
	case plan.Possible(area + written): // 1684: the code of a country with that of an area
		return e164Of(dial, written)
	}
	return "", wrongLength()
}

func wrongLength() error {
	return fault.Invalid("phoneNumber", "is too short or too long")
}

// e164Of joins a dialling code and the digits of a number.
func e164Of(dial, number string) (string, error) {
	if len(number) < minNumberDigits || len(dial)+len(number) > maxPhoneDigits {
		return "", wrongLength()
	}
	return "+" + dial + number, nil
}

// Former returns the form in which 0.9 stored the number that a client writes: it dropped one leading 0 in every
// country, and no other prefix. It is "" if 0.9 could not store it.
func Former(dial, phone string) string {
	number := NumberText(phone)
	for _, sign := range []string{"+", "00"} {
		number = strings.TrimPrefix(number, sign+dial)
	}
	former, err := e164Of(dial, strings.TrimPrefix(number, "0"))
	if err != nil || !digits(number) {
		return ""
	}
	return former
}

// FormerOf returns the form in which 0.9 stored and finds a canonical number. It equals the number in most countries.
func FormerOf(e164 string) string {
	dial, number, plan := numbering.Split(strings.TrimPrefix(e164, "+"))
	if plan == nil || !strings.HasPrefix(number, "0") || (User{Phone: e164}).Reachable() == "" {
		return e164
	}
	return "+" + dial + number[1:]
}

// NumberText returns the characters of a written number without those that divide its digits.
func NumberText(phone string) string { return strings.Map(separator, legible.Typed(phone)) }

// separator drops the characters that divide the digits of a number (strings.Map).
func separator(r rune) rune {
	switch {
	case r >= '0' && r <= '9':
		return r
	case strings.ContainsRune("-.()[]/\u2212\uff08\uff09\uff0e\uff0f", r), r > 0x7f && unicode.Is(unicode.Pd, r):
		return -1
	case r == '\uff0b' || r == '\ufe62': // other forms of the sign
		return '+'
	}
	return r
}

// Identify reads the client's identification of an account: a dialling code and a number, or a mail address; nil is
// not sent. The problems name every sent part that is malformed. It does not check for missing or contradictory
// parts; the caller must do so before it uses the Identifier.
func Identify(countryCode, phone, mail *string) (who Identifier, problems []fault.Problem) {
	return identify(countryCode, phone, mail, international)
}

// LookUp is Identify for the identification of an existing account. It also sets Identifier.Former, and accepts numbers
// of a length that the country does not have, because 0.9 stored them.
func LookUp(countryCode, phone, mail *string) (who Identifier, problems []fault.Problem) {
	former := ""
	who, problems = identify(countryCode, phone, mail, func(dial, text string) (string, error) {
		e164, err := international(dial, text)
		if err == nil && !strings.HasPrefix(text, "0") && e164[1+len(dial):] == text {
			return e164, nil // 0.9 stored the same, without another allocation
		}
		switch former = Former(dial, text); {
		case err != nil && former != "":
			e164, former, err = former, "", nil
		case former == e164:
			former = ""
		}
		return e164, err
	})
	who.Former = former
	return who, problems
}

func identify(countryCode, phone, mail *string, read func(dial, phone string) (string, error)) (who Identifier,
	problems []fault.Problem) {
	note := func(canonical string, err error) string {
		if e, ok := err.(*fault.Error); ok {
			problems = append(problems, e.Fields...)
		}
		return canonical
	}
	dial := ""
	if countryCode != nil {
		dial = note(DialCode(*countryCode))
	}
	switch {
	case phone != nil && dial != "":
		who.Phone = note(read(dial, *phone))
	case phone != nil: // a missing or malformed code is a problem of its own
		if text := strings.TrimPrefix(NumberText(*phone), "+"); text == "" || !digits(text) {
			note("", fault.Invalid("phoneNumber", "must be digits, without the country code"))
		} else {
			note(e164Of("", text))
		}
	}
	if mail != nil {
		who.Mail = note(CanonicalMail(*mail))
	}
	return who, problems
}

// DialCode returns the one spelling of a dialling code: digits without "+" and leading zeros.
//
// Errors: INVALID_FIELD naming countryCode.
func DialCode(s string) (string, error) {
	s = strings.TrimLeft(strings.TrimPrefix(strings.Map(separator, legible.Typed(s)), "+"), "0")
	if s == "" || len(s) > maxDialDigits || !digits(s) {
		return "", fault.Invalid("countryCode", "must be a dialling code such as 90")
	}
	return s, nil
}

// CanonicalMail returns the one spelling of a mail address: trimmed and in lower case. The part before the @ must be
// ASCII: look-alike letters of other scripts that fold to one account are a known way to take it over. A domain beyond
// ASCII is stored by its A-labels (xn--…), which no other domain has.
//
// Errors: INVALID_FIELD naming email.
func CanonicalMail(s string) (string, error) {
	s = asciiDomain(strings.TrimSpace(s))
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

// domains converts a domain of lower-case letters. It maps no letter to another one.
var domains = idna.New(idna.ValidateForRegistration(), idna.CheckJoiners(true))

// asciiDomain returns an address with the A-labels of its domain; unchanged, if it needs none or has none.
func asciiDomain(mail string) string {
	at := strings.LastIndexByte(mail, '@')
	domain := mail[at+1:]
	if at < 0 || strings.IndexFunc(domain, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return mail
	}
	ascii, err := domains.ToASCII(norm.NFC.String(strings.ToLower(domain)))
	if err != nil {
		return mail
	}
	return mail[:at+1] + ascii
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// CheckNames trims a name and a surname, and returns their faults. Either may be blank.
func CheckNames(name, surname *string) (problems []fault.Problem) {
	*name, *surname = strings.Join(strings.Fields(*name), " "), strings.Join(strings.Fields(*surname), " ")
	for i, text := range []string{*name, *surname} {
		if !legible.Valid(text) {
			problems = append(problems, fault.Problem{Field: []string{"name", "surname"}[i],
				Message: "must not contain control characters"})
		}
	}
	return problems
}
