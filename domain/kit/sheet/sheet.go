// Package sheet writes CSV for spreadsheets (RFC 4180), and says what is wrong with CSV that other programs wrote. No
// text of a user becomes a formula there.
//
// The one idea: it is unknown which character a spreadsheet takes as a separator. So every cell is quoted, and a sign
// that begins a formula is neutralised wherever a cell could begin. The signs are those of OWASP's page "CSV
// Injection"; console/src/kit/csv.ts has the same list, and a test compares them.
//
// Start reading at CSV.
package sheet

import (
	"strings"
	"unicode"
)

const (
	// formulas are the signs that begin a formula, also in full width.
	formulas = "=+-@＝＋－＠"
	// separators are the characters after which a cell could begin, besides blanks, controls and invisible ones.
	separators = `,;|:"'،؛`
)

// CSV returns rows as a file. Lines end with a line feed.
func CSV(rows [][]string) []byte {
	var out strings.Builder
	for _, row := range rows {
		for i, text := range row {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteByte('"')
			out.WriteString(strings.ReplaceAll(neutral(text), `"`, `""`))
			out.WriteByte('"')
		}
		out.WriteByte('\n')
	}
	return []byte(out.String())
}

// neutral puts an apostrophe before each sign that could begin a formula, and before a text that begins with a tab or a
// line break, which some spreadsheets remove.
func neutral(text string) string {
	var out strings.Builder
	begins := true
	for i, r := range text {
		if begins && strings.ContainsRune(formulas, r) || i == 0 && strings.ContainsRune("\t\r\n", r) {
			out.WriteByte('\'')
		}
		out.WriteRune(r)
		begins = strings.ContainsRune(separators, r) || unicode.In(r, unicode.White_Space, unicode.Cc, unicode.Cf)
	}
	return out.String()
}
