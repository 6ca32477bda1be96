package totp

import (
	"crypto/rand"
	"strings"
	"unicode"

	"castellan/domain/kit/legible"
)

// RecoveryCodes is the number of recovery codes of an authenticator (section 8 of the interface).
const RecoveryCodes = 5

// A recovery code is two groups of base32 letters, 50 bits in all (D-TOTP-07).
const groupLetters = 5

// newRecoveryCode draws a code. rand.Text is uniform over the base32 alphabet.
func newRecoveryCode() string {
	t := strings.ToLower(rand.Text()[:2*groupLetters])
	return t[:groupLetters] + "-" + t[groupLetters:]
}

// canonical returns a recovery code without the changes of copying and typing: case, blanks, dashes of any kind,
// invisible marks and digits of other scripts (D-TOTP-02).
func canonical(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case unicode.Is(unicode.Dash, r):
			return -1
		}
		return r
	}, legible.Typed(code))
}

// wellFormed reports whether the text could be a code. Only such texts are hashed and counted: the input may be long.
func wellFormed(canonical string) bool {
	if len(canonical) != 2*groupLetters {
		return false
	}
	for i := range len(canonical) {
		if c := canonical[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}
