package legible

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Typed returns a code or a number as a person typed or pasted it, without what keyboards and other programs add. The
// digits of every script become ASCII, and blanks and invisible marks are dropped. Controls remain, so the caller
// refuses them. It must not be applied to signed texts, ids, and texts with words.
func Typed(text string) string {
	if plain(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return typed(r)
	}, text)
}

// typed returns the character that is meant: an ASCII digit for that of another script, -1 for an invisible mark.
func typed(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	if !unicode.IsControl(r) && hides(r) {
		return -1
	}
	digit, _ := digitOf(r)
	return digit
}

// Number is Typed for a number with decimals. A blank between two characters remains, because it could be a mistake for
// a decimal mark. The Arabic decimal mark and the minus sign become ASCII.
func Number(text string) string {
	if plain(text) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\u066b':
			return '.'
		case r == '\u2212':
			return '-'
		case unicode.IsSpace(r):
			return r
		}
		return typed(r)
	}, text)
	return strings.TrimSpace(text)
}

// plain reports whether a text is visible ASCII without blanks.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// digitOf returns the ASCII digit of a decimal digit of any script. Unicode encodes the ten digits of a script in
// order, one after the other.
func digitOf(r rune) (digit rune, ok bool) {
	if !unicode.Is(unicode.Nd, r) {
		return r, false
	}
	for _, s := range unicode.Nd.R16 {
		if uint32(r) <= uint32(s.Hi) {
			return '0' + (r-rune(s.Lo))%10, true
		}
	}
	for _, s := range unicode.Nd.R32 {
		if uint32(r) <= s.Hi {
			return '0' + (r-rune(s.Lo))%10, true
		}
	}
	return r, false
}
