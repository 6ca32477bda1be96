// Package slug makes the part of an address by which a record is found of the
// record's title (D-ANN-01). It does no I/O: the caller knows which are taken.
package slug

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// maxChars bounds a slug.
const maxChars = 80

// folded are the letters of Turkish that are not among a to z.
var folded = strings.NewReplacer("ç", "c", "Ç", "c", "ğ", "g", "Ğ", "g", "ı", "i", "İ", "i", "ö", "o", "Ö", "o",
	"ş", "s", "Ş", "s", "ü", "u", "Ü", "u", "â", "a", "Â", "a", "î", "i", "Î", "i", "û", "u", "Û", "u")

// Of makes the slug of a title, "" where it has neither letter nor digit: letters and digits of any script in
// lower case, without accents that stand alone, and dashes between the words.
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

// Free is base where it is not taken, else base with the first number from 2 behind
// it that is not.
func Free(base string, taken []string) string {
	slug := base
	for n := 2; slices.Contains(taken, slug); n++ {
		slug = fmt.Sprintf("%s-%d", base, n)
	}
	return slug
}
