// Package legible is the rule for every text that a person signs or is shown for a decision: rows, titles, names, tags,
// purposes and addresses. Such a text has no character that is invisible, or that changes the order of others.
//
// The one idea: Unicode properties decide, not a list. Two joiners are permitted where a script needs them (RFC 5892,
// A.1 and A.2). A text from a client that breaks the rule is refused. A stored one is shown escaped, because a refusal
// would take a decision from its owner.
//
// Start reading at Valid.
package legible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"castellan/domain/kit/fault"
)

const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// blank are the characters that are drawn as nothing although no property says so.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}, // BRAILLE PATTERN BLANK
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // EGYPTIAN HIEROGLYPH FULL BLANK, HALF BLANK
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // KHITAN SMALL SCRIPT FILLER
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // MUSICAL SYMBOL NULL NOTEHEAD
	},
}

// hides reports whether a character is invisible or changes the order of others: controls, line separators,
// Default_Ignorable_Code_Point, Bidi_Control and blank letters. Format characters that are drawn, such as the Arabic
// number sign, do not hide.
func hides(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector, unicode.Noncharacter_Code_Point, blank) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// Line reports whether a text is valid and not blank.
func Line(text string) bool { return strings.TrimSpace(text) != "" && Valid(text) }

// Valid reports whether a text is one line of UTF-8 whose characters are all seen, in their order.
func Valid(text string) bool {
	joins := false
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return false
		case r == joiner || r == nonJoiner:
			joins = true
		case hides(r):
			return false
		}
	}
	if joins {
		for _, word := range strings.FieldsFunc(text, separates) {
			if !joinsRight(word) {
				return false
			}
		}
	}
	return true
}

// MaxName is the maximum length of the names that administrators give to records, in characters.
const MaxName = 200

// CheckName requires of a field that it is a name of at most MaxName characters, all of which are seen.
func CheckName(ps *fault.Problems, field, name string) {
	n := utf8.RuneCountInString(strings.TrimSpace(name))
	fits := n > 0 && n <= MaxName
	ps.Require(fits, field, "must be 1 to 200 characters")
	ps.Require(!fits || Valid(name), field, "must not contain control characters")
}

// Escape returns a text with [U+202E] in place of each character that breaks the rule, and of each byte that is no
// UTF-8.
func Escape(text string) string {
	if Valid(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		n := strings.IndexFunc(text, separates)
		if n == 0 {
			r, size := utf8.DecodeRuneInString(text)
			write(&out, r, hides(r) || r == utf8.RuneError && size == 1)
			text = text[size:]
			continue
		}
		if n < 0 {
			n = len(text)
		}
		wrong := !joinsRight(text[:n])
		for _, r := range text[:n] {
			write(&out, r, hides(r) && (wrong || r != joiner && r != nonJoiner))
		}
		text = text[n:]
	}
	return out.String()
}

func write(out *strings.Builder, r rune, escaped bool) {
	if escaped {
		fmt.Fprintf(out, "[U+%04X]", r)
	} else {
		out.WriteRune(r)
	}
}

// separates reports whether a character ends a word. Joiners act within a word.
func separates(r rune) bool {
	return r != joiner && r != nonJoiner && !unicode.IsLetter(r) && !unicode.IsMark(r)
}

// contextual judges the joiners of a word, and nothing else.
var contextual = idna.New(idna.CheckJoiners(true))

func joinsRight(word string) bool {
	if !strings.ContainsAny(word, string(joiner)+string(nonJoiner)) {
		return true
	}
	_, err := contextual.ToUnicode(word)
	return err == nil
}
