package totp

import (
	"crypto/rand"
	"strings"
	"unicode"
)

// RecoveryCodes is how many an authenticator is defined with (section 8 of the interface).
const RecoveryCodes = 5

// A recovery code is two groups of base32 letters, 50 bits in all (D-TOTP-07).
const groupLetters = 5

// newRecoveryCode draws one. rand.Text is uniform over the base32 alphabet.
func newRecoveryCode() string {
	t := strings.ToLower(rand.Text()[:2*groupLetters])
	return t[:groupLetters] + "-" + t[groupLetters:]
}

// canonical is a recovery code without what people add or change when they copy
// it: case, spaces, dashes of any kind, invisible marks (D-TOTP-02).
func canonical(code string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case unicode.IsSpace(r), unicode.Is(unicode.Dash, r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, code)
}

// wellFormed tells what could be a code. Nothing else is hashed: what somebody
// sends may be long.
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
