package geo

import (
	"net/netip"
	"slices"
	"strings"
)

// Filter is the set of countries from which an account may be used: their codes, sorted and separated by commas. An
// empty filter accepts all countries (section 4.21 of the interface). It is a text because rows repeat it.
type Filter string

// NewFilter returns the filter of the countries, in any order.
func NewFilter(codes ...string) Filter {
	codes = slices.Clone(codes)
	slices.Sort(codes)
	return Filter(strings.Join(slices.Compact(codes), ","))
}

// Codes lists the countries.
func (f Filter) Codes() []string {
	if f == "" {
		return nil
	}
	return strings.Split(string(f), ",")
}

// Has reports whether the filter names a country.
func (f Filter) Has(code string) bool {
	if len(code) != 2 {
		return false
	}
	for i := 0; i+2 <= len(f); i += 3 {
		if f[i] == code[0] && f[i+1] == code[1] {
			return true
		}
	}
	return false
}

// With returns the filter with one more country.
func (f Filter) With(code string) Filter { return NewFilter(append(f.Codes(), code)...) }

// Without returns the filter without a country; without its last country it accepts all.
func (f Filter) Without(code string) Filter {
	return NewFilter(slices.DeleteFunc(f.Codes(), func(c string) bool { return c == code })...)
}

// Policy applies to addresses whose country is unknown (D-GEO-01). The zero value rejects them.
type Policy struct {
	AllowPrivate bool // accepts loopback, private and link-local addresses
	AllowUnknown bool // accepts all other addresses
}

// Admits reports whether an account with the filter may be used from an address. country is the country of the address;
// "" if unknown.
func (p Policy) Admits(f Filter, country string, from netip.Addr) bool {
	switch {
	case f == "":
		return true
	case country != "":
		return f.Has(country)
	case from.IsLoopback() || from.IsPrivate() || from.IsLinkLocalUnicast():
		return p.AllowPrivate
	}
	return p.AllowUnknown
}
