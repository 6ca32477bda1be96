// Package geo holds the countries of ISO 3166-1 and locates addresses.
//
// The one idea: the location of addresses is external data that changes every month, while the list of countries is
// ours. Locations come from a port (Locator) whose answers are never trusted to be countries. The countries are a table
// (countries.tsv) of the 249 assigned codes with their names in the languages of the service, as the Unicode CLDR
// spells them.
//
// Start reading at Assigned and Locator.
package geo

import (
	_ "embed"
	"net/netip"
	"slices"
	"strings"

	"castellan/domain/kit/fault"
)

// Locator returns the country of an address as an ISO 3166-1 alpha-2 code; "" if unknown. It answers from memory and is
// safe for concurrent use. The address is not IPv4-mapped and has no zone.
type Locator interface {
	Country(a netip.Addr) string
}

//go:embed countries.tsv
var table string

// dialling holds the dialling code of each country, in the same order.
//
//go:embed dialling.tsv
var dialling string

// languages are the columns of the table after the code.
var languages = []string{"en", "tr", "ar"}

// place maps a code, as a position in the two-letter square, to its row, counted from 1; 0 means no country. An array
// is faster than a map, and each request needs one lookup.
var place [26 * 26]uint8

// names holds the columns of each row; codes[i] is the code of row i+1.
var (
	names [][]string
	codes []string
	dials []string
	// dialCodes are dials without duplicates, sorted.
	dialCodes []string
)

func init() {
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		codes, names = append(codes, f[0]), append(names, f[1:])
		place[square(f[0])] = uint8(len(codes))
	}
	for line := range strings.Lines(dialling) {
		_, dial, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		dials = append(dials, dial)
	}
	dialCodes = slices.Compact(slices.Sorted(slices.Values(dials)))
}

func square(code string) int { return int(code[0]-'A')*26 + int(code[1]-'A') }

func row(code string) int {
	if len(code) != 2 || code[0] < 'A' || code[0] > 'Z' || code[1] < 'A' || code[1] > 'Z' {
		return 0
	}
	return int(place[square(code)])
}

// Assigned reports whether code, in capital letters, is the code of a country. Codes that databases and proxies use for
// unknown addresses, proxies and regions (XX, ZZ, T1, EU, AP) are not. Codes that ISO leaves to its users, such as XK,
// are not either.
func Assigned(code string) bool { return row(code) > 0 }

// Codes lists the codes of all countries, sorted.
func Codes() []string { return append([]string(nil), codes...) }

// Name returns the name of a country in a language (tr, en or ar; any other means English). An unassigned code is
// returned unchanged.
func Name(code, language string) string {
	i := row(code)
	if i == 0 {
		return code
	}
	for n, l := range languages {
		if l == language {
			return names[i-1][n]
		}
	}
	return names[i-1][0]
}

// DialCode returns the dialling code of a country, digits only, such as 90 (ITU-T E.164); "" for an unassigned code.
// Countries share codes: the United States and Canada have the same one. A territory without its own numbers has the
// code of the country that governs it.
func DialCode(code string) string {
	if i := row(code); i > 0 {
		return dials[i-1]
	}
	return ""
}

// DialCodes lists the dialling codes of all countries, without duplicates, sorted.
func DialCodes() []string { return append([]string(nil), dialCodes...) }

// Parse reads a country code in upper or lower case (D-GEO-06).
//
// Errors: INVALID_FIELD naming countryCode.
func Parse(code string) (string, error) {
	if len(code) == 2 { // two ASCII letters, or not a code: no other text becomes one in capitals
		up := string([]byte{upper(code[0]), upper(code[1])})
		if Assigned(up) {
			return up, nil
		}
	}
	return "", fault.Invalid("countryCode", "must be a two-letter country code (ISO 3166-1 alpha-2), such as TR")
}

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}
