package password

import (
	_ "embed"
	"strings"
)

// common is the list of common passwords: one a line, folded, sorted by bytes,
// each ended by a newline. It holds only what the policy would otherwise let
// pass, so nothing shorter than eight characters; world-wide favourites,
// keyboard walks and dates stand beside Turkish ones (names, teams, towns and
// endearments with the years and numbers that people put behind them).
//
//go:embed common.txt
var common string

// Common reports whether a password is on the list, whatever its case and with
// or without Turkish marks. It searches the text itself, which costs no memory
// beyond the program's own.
func Common(password string) bool {
	want := fold(password)
	lo, hi := 0, len(common)
	for lo < hi {
		mid := lo + strings.LastIndexByte(common[lo:(lo+hi)/2], '\n') + 1 // the line that holds the middle
		end := mid + strings.IndexByte(common[mid:], '\n')
		switch strings.Compare(want, common[mid:end]) {
		case 0:
			return true
		case -1:
			hi = mid
		default:
			lo = end + 1
		}
	}
	return false
}

// fold brings the spellings of one word together.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case 'ı', 'İ', 'î', 'Î':
			return 'i'
		case 'ş', 'Ş':
			return 's'
		case 'ğ', 'Ğ':
			return 'g'
		case 'ü', 'Ü', 'û', 'Û':
			return 'u'
		case 'ö', 'Ö':
			return 'o'
		case 'ç', 'Ç':
			return 'c'
		case 'â', 'Â':
			return 'a'
		}
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
