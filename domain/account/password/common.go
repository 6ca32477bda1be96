package password

import (
	_ "embed"
	"strings"
)

// common is the list of common passwords: one a line, folded, sorted by bytes, each ended by a newline. It holds only
// passwords that the policy would otherwise accept, so none is shorter than eight characters. It contains world-wide
// favourites, keyboard walks and dates, and Turkish names, teams, towns and endearments with the usual years and
// numbers.
//
//go:embed common.txt
var common string

// Common reports whether a password is on the list, ignoring case and Turkish marks. It searches the embedded text,
// so it needs no further memory.
func Common(password string) bool {
	want := fold(password)
	lo, hi := 0, len(common)
	for lo < hi {
		mid := lo + strings.LastIndexByte(common[lo:(lo+hi)/2], '\n') + 1 // the line around the middle
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

// fold maps the spellings of a word to one form.
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
