// Package geo knows the countries of ISO 3166-1 and asks where an address is.
//
// The one idea: where an address lies is the knowledge of others and changes
// every month, which countries there are is ours. So the first is a port
// (Locator) whose answers are never trusted to be countries, and the second is
// a table (countries.tsv) of the 249 assigned codes with their names in the
// languages of the service, as the Unicode CLDR spells them.
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

// Locator tells in which country an address lies, as an ISO 3166-1 alpha-2
// code; "" when that is not known. It answers from memory and is safe for
// concurrent use. The address is not IPv4-mapped and has no zone.
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

// place is the row of a code in the two-letter square, counted from 1; 0: no
// country has it. An array answers faster than a map, and it is asked once for
// each request.
var place [26 * 26]uint8

// names holds the columns of each row, codes[i] the code of row i+1.
var (
	names [][]string
	codes []string
	dials []string
	// dialCodes are dials without those that are equal, sorted.
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

// Assigned reports whether a country has the code, which is in capital letters.
// What databases and proxies use for "unknown", for proxies and for regions
// (XX, ZZ, T1, EU, AP) is no country, and neither are codes that ISO leaves to
// its users, XK among them.
func Assigned(code string) bool { return row(code) > 0 }

// Codes lists the codes of all countries, sorted.
func Codes() []string { return append([]string(nil), codes...) }

// Name is what a country is called in a language (tr, en or ar; English in any
// other). A code that is no country's is its own name.
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

// DialCode is the dialling code of a country, digits only, such as 90 (ITU-T E.164);
// "" for a code that is no country's. Countries share codes: that of the United
// States is also Canada's. A territory without numbers of its own has the code of
// the country that runs it.
func DialCode(code string) string {
	if i := row(code); i > 0 {
		return dials[i-1]
	}
	return ""
}

// DialCodes lists the dialling codes of all countries, each once, sorted.
func DialCodes() []string { return append([]string(nil), dialCodes...) }

// Parse reads the code that is given for a country, in either case
// (D-GEO-06).
//
// Errors: INVALID_FIELD naming countryCode.
func Parse(code string) (string, error) {
	if len(code) == 2 { // and so two ASCII letters, or no code: nothing else becomes one in capitals
		up := string([]byte{upper(code[0]), upper(code[1])})
		if Assigned(up) {
			return up, nil
		}
	}
	return "", fault.Invalid("countryCode", "must be a country's code of two letters (ISO 3166-1 alpha-2), such as TR")
}

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}
