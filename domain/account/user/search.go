package user

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"castellan/domain/kit/legible"
)

// undivided are the letters that Unicode does not decompose into a letter and an accent.
var undivided = strings.NewReplacer("ı", "i", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "ß", "ss", "æ", "ae", "œ", "oe",
	"þ", "th", "ħ", "h", "ŧ", "t", "ŋ", "n", "ĸ", "k")

// Fold returns the form in which people search for a name: without case, accents and invisible marks, with the letters
// of ligatures and ASCII digits. Equal folded names may be different names.
func Fold(name string) string {
	if i := strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }); i < 0 {
		return strings.ToLower(name)
	}
	name = strings.Map(func(r rune) rune {
		if r == 'İ' { // its lower case has a dot of its own
			return 'i'
		}
		return r
	}, norm.NFC.String(name))
	name = norm.NFKD.String(undivided.Replace(strings.ToLower(name)))
	return undivided.Replace(strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case unicode.IsDigit(r):
			return rune((legible.Typed(string(r)) + string(r))[0])
		case r > 0x7f && legible.Typed(string(r)) == "" && !unicode.IsSpace(r):
			return -1
		}
		return r
	}, name)))
}

// The bounds of a search.
const (
	maxSearchWords  = 8  // of a text; further ones are ignored
	maxWordChars    = 40 // of an index entry and of a word
	minNumberSearch = 3  // digits that are searched in the middle of a number
)

// Search is a text that finds accounts. Every word is the beginning of a word of the name or the mail address. Every
// part of a number occurs in the phone number, or is the beginning of such a word.
type Search struct{ Words, Digits []string }

// ParseSearch reads the words of a text. Successive groups of digits are one part of a number, such as "532 000". It
// reports false for a text without a letter or a digit.
func ParseSearch(text string) (s Search, ok bool) {
	number := ""
	flush := func() {
		// One zero begins a national number and two an international one; the stored number has neither.
		if rest := strings.TrimLeft(number, "0"); len(rest) >= minNumberSearch && len(number)-len(rest) <= 2 {
			number = rest
		}
		switch {
		case len(number) >= minNumberSearch:
			s.Digits = append(s.Digits, clip(number))
		case number != "":
			s.Words = append(s.Words, number)
		}
		number = ""
	}
	for _, field := range strings.Fields(Fold(text)) {
		if part := strings.Map(separator, field); part != "" && digits(strings.TrimPrefix(part, "+")) {
			number += strings.TrimPrefix(part, "+")
			continue
		}
		flush()
		if strings.ContainsRune(field, '@') {
			if w := strings.TrimLeft(mailText(field), "@._-"); w != "" {
				s.Words = append(s.Words, clip(w))
			}
			continue
		}
		for _, w := range nameWords(field) {
			s.Words = append(s.Words, clip(w))
		}
	}
	flush()
	s.Words, s.Digits = s.Words[:min(len(s.Words), maxSearchWords)], s.Digits[:min(len(s.Digits), maxSearchWords)]
	return s, len(s.Words)+len(s.Digits) > 0
}

// Index is what a search compares: words with all their beginnings, and the digits of the phone number.
type Index struct {
	Words  []string
	Digits string
}

// IndexOf returns the index of an account. A mail address is indexed from the beginning of each of its words, so that
// ayse@demo and demo.com are found as well as ayse.
func IndexOf(u User) Index {
	words := nameWords(Fold(u.FullName()))
	mail := mailText(u.Email)
	for i := range len(mail) {
		if letter(mail[i]) && (i == 0 || !letter(mail[i-1])) {
			words = append(words, mail[i:])
		}
	}
	for i := range words {
		words[i] = clip(words[i])
	}
	slices.Sort(words)
	return Index{slices.Compact(words), strings.TrimPrefix(u.Reachable(), "+")}
}

// Matches reports whether the search finds an account with an index.
func (s Search) Matches(x Index) bool {
	begins := func(part string) bool {
		return slices.ContainsFunc(x.Words, func(w string) bool { return strings.HasPrefix(w, part) })
	}
	for _, w := range s.Words {
		if !begins(w) {
			return false
		}
	}
	for _, d := range s.Digits {
		if !strings.Contains(x.Digits, d) && !begins(d) {
			return false
		}
	}
	return true
}

// nameWords returns the words of a folded text.
func nameWords(folded string) []string {
	return strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// mailText returns an address with one character for those that a database would read as an operator.
func mailText(mail string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '@' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, mail)
}

func letter(b byte) bool { return b != '@' && b != '.' && b != '-' && b != '_' }

// clip returns the first characters of a word.
func clip(word string) string {
	n := 0
	for i := range word {
		if n == maxWordChars {
			return word[:i]
		}
		n++
	}
	return word
}
