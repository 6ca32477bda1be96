// Package slug derives the address of a record from its title (D-ANN-01). It does no I/O: the caller supplies the taken
// slugs.
package slug

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxChars is the maximum length of a slug.
const maxChars = 80

// folded maps the Turkish letters outside a to z.
var folded = strings.NewReplacer("ç", "c", "Ç", "c", "ğ", "g", "Ğ", "g", "ı", "i", "İ", "i", "ö", "o", "Ö", "o",
	"ş", "s", "Ş", "s", "ü", "u", "Ü", "u", "â", "a", "Â", "a", "î", "i", "Î", "i", "û", "u", "Û", "u")

// Of makes the slug of a title; "" if the title has neither letter nor digit. A slug has letters and digits of any
// script in lower case, without combining accents, and dashes between the words.
func Of(title string) string {
	var b strings.Builder
	chars, dash := 0, false
	for _, r := range strings.ToLower(folded.Replace(title)) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			dash = chars > 0
		case chars < maxChars:
			if dash {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			chars, dash = chars+1, false
		}
	}
	return b.String()
}

// Free returns base if it is not taken, else base followed by the first free number from 2.
func Free(base string, taken []string) string {
	slug := base
	for n := 2; slices.Contains(taken, slug); n++ {
		slug = fmt.Sprintf("%s-%d", base, n)
	}
	return slug
}
