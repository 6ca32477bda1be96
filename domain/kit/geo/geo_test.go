package geo

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// The table holds every assigned code once, with a name in each language.
func TestTable(t *testing.T) {
	if len(codes) != 249 || !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != 249 {
		t.Errorf("%d codes, sorted %v", len(codes), slices.IsSorted(codes))
	}
	for i, code := range codes {
		if row(code) != i+1 || len(names[i]) != len(languages) {
			t.Errorf("%s: row %d, names %q", code, row(code), names[i])
		}
		for _, n := range names[i] {
			if strings.TrimSpace(n) != n || n == "" {
				t.Errorf("%s: name %q", code, n)
			}
		}
	}
	if got := Codes(); !slices.Equal(got, codes) {
		t.Error("Codes are others")
	}
}

// Every country has a dialling code, in its own row.
func TestDialCodes(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(dialling), "\n")
	if len(lines) != len(codes) {
		t.Fatalf("%d rows for %d countries", len(lines), len(codes))
	}
	for i, line := range lines {
		code, dial, _ := strings.Cut(line, "\t")
		if code != codes[i] || DialCode(code) != dial || len(dial) < 1 || len(dial) > 3 ||
			strings.Trim(dial, "0123456789") != "" {
			t.Errorf("row %d is of %s: %q", i, code, dial)
		}
	}
	for code, want := range map[string]string{"TR": "90", "US": "1", "DE": "49", "QA": "974", "XX": "", "": "", "tr": ""} {
		storetest.Equal(t, DialCode(code), want, code)
	}
}

func TestAssigned(t *testing.T) {
	for code, want := range map[string]bool{"TR": true, "QA": true, "AQ": true, "BQ": true, "SS": true, "tr": false,
		"Tr": false, "": false, "T": false, "TUR": false,
		"T1": false, "XX": false, "XK": false, "ZZ": false, "EU": false, "AP": false, "AN": false, "UK": false,
		"SU": false, "AA": false, "[\\": false} {
		storetest.Equal(t, Assigned(code), want, code)
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct{ code, language, want string }{
		{"DE", "en", "Germany"}, {"DE", "tr", "Almanya"}, {"DE", "ar", "ألمانيا"}, {"DE", "", "Germany"}, {"DE", "fr",
			"Germany"},
		{"TR", "tr", "Türkiye"}, {"XK", "en", "XK"}, {"", "en", ""},
	} {
		storetest.Equal(t, Name(c.code, c.language), c.want, c.code, "in", c.language)
	}
}

// D-GEO-06. A character that only becomes a letter by the rules of Unicode is rejected.
func TestParse(t *testing.T) {
	for in, want := range map[string]string{"TR": "TR", "tr": "TR", "dE": "DE", "": "", "t": "", "tur": "", "XX": "",
		"xk": "", "eu": "", " TR": "", "TR ": "", "ıt": "", "ſe": "", "90": "", "T\x00": "", "🇹🇷": ""} {
		got, err := Parse(in)
		if got != want || (err != nil) != (want == "") || err != nil && fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// The list of dialling codes has no duplicate and no empty code.
func TestDialCodesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, dial := range DialCodes() {
		if dial == "" || seen[dial] {
			t.Errorf("%q is empty or listed twice", dial)
		}
		seen[dial] = true
	}
	for _, code := range Codes() {
		if !seen[DialCode(code)] {
			t.Errorf("%s is missing", DialCode(code))
		}
	}
}

func TestFilter(t *testing.T) {
	f := NewFilter("TR", "DE", "TR")
	if f != "DE,TR" || !slices.Equal(f.Codes(), []string{"DE", "TR"}) {
		t.Errorf("%q, %v", f, f.Codes())
	}
	for code, want := range map[string]bool{"DE": true, "TR": true, "NL": false, "ET": false, "": false, "D": false,
		"E,": false, "tr": false, "DE,TR": false} {
		storetest.Equal(t, f.Has(code), want, code)
	}
	for _, c := range []struct{ got, want Filter }{
		{f.With("NL"), "DE,NL,TR"}, {f.With("DE"), f}, {f.Without("DE"), "TR"}, {f.Without("NL"),
			f}, {Filter("TR").Without("TR"), ""}, {Filter("").With("TR"), "TR"}, {Filter("").Without("TR"), ""},
	} {
		storetest.Equal(t, c.got, c.want)
	}
	if Filter("").Codes() != nil || Filter("").Has("TR") {
		t.Error("an empty filter names a country")
	}
}

// D-GEO-01 and the accepted countries (section 4.21 of the interface).
func TestAdmits(t *testing.T) {
	closed, open := Policy{}, Policy{AllowPrivate: true, AllowUnknown: true}
	private := Policy{AllowPrivate: true}
	for _, c := range []struct {
		p       Policy
		f       Filter
		country string
		from    string
		want    bool
	}{
		{closed, "", "US", "8.8.8.8", true},
		{closed, "", "", "8.8.8.8", true},
		{closed, "", "", "10.0.0.1", true},
		{closed, "TR", "TR", "8.8.8.8", true},
		{closed, "DE,TR", "TR", "8.8.8.8", true},
		{open, "TR", "US", "8.8.8.8", false},
		{open, "TR", "US", "127.0.0.1", false}, // a trusted proxy reports the country of the client
		{closed, "TR", "TR", "10.0.0.1", true},
		{closed, "TR", "", "127.0.0.1", false},
		{closed, "TR", "", "10.0.0.1", false},
		{closed, "TR", "", "8.8.8.8", false},
		{private, "TR", "", "127.0.0.1", true},
		{private, "TR", "", "::1", true},
		{private, "TR", "", "192.168.1.9", true},
		{private, "TR", "", "fd00::1", true},
		{private, "TR", "", "fe80::1", true},
		{private, "TR", "", "8.8.8.8", false},
		{private, "TR", "", "2001:db8::1", false},
		{open, "TR", "", "8.8.8.8", true},
		{Policy{AllowUnknown: true}, "TR", "", "10.0.0.1", false},
	} {
		if got := c.p.Admits(c.f, c.country, netip.MustParseAddr(c.from)); got != c.want {
			t.Errorf("%+v %q from %s in %q: %v", c.p, c.f, c.from, c.country, got)
		}
	}
	storetest.Equal(t, private.Admits("TR", "", netip.Addr{}), false, "no address passes")
}
