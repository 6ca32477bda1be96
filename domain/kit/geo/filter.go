package geo

import (
	"net/netip"
	"slices"
	"strings"
)

// Filter is the countries from which an account may be used: their codes,
// sorted and separated by commas. An empty one names no country and accepts all
// (section 4.21 of the interface). It is text because it is repeated in rows.
type Filter string

// NewFilter is the filter of some countries, in any order.
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

// With is the filter with one country more.
func (f Filter) With(code string) Filter { return NewFilter(append(f.Codes(), code)...) }

// Without is the filter without a country; without its last one it accepts all.
func (f Filter) Without(code string) Filter {
	return NewFilter(slices.DeleteFunc(f.Codes(), func(c string) bool { return c == code })...)
}

// Policy is what holds for addresses whose country is not known (D-GEO-01). The
// zero value keeps them out.
type Policy struct {
	AllowPrivate bool // lets loopback, private and link-local addresses in
	AllowUnknown bool // lets all others in
}

// Admits reports whether an account with the filter may be used from an address,
// which lies in the country; "" when that is not known.
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
