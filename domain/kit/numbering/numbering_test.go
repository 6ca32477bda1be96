package numbering

import (
	"strings"
	"testing"
)

// D-PWD-07: the prefix of a country is dropped from a national number, and nothing else is.
func TestNational(t *testing.T) {
	for _, c := range []struct{ dial, written, want string }{
		{"90", "05321234567", "5321234567"}, {"90", "5321234567", "5321234567"}, {"90", "53212345", ""},
		{"90", "00442079460958", ""},                                       // of another country
		{"39", "0331234567", "0331234567"},                                 // Italy: 0 is part of the number
		{"39", "331234567", "331234567"},                                   // … and this is a mobile
		{"225", "0707070707", "0707070707"},                                // Ivory Coast
		{"225", "707070707", ""},                                           //
		{"229", "0197123456", "0197123456"},                                // Benin
		{"242", "061234567", "061234567"},                                  // Congo
		{"378", "0549886377", "0549886377"},                                // San Marino
		{"7", "89121234567", "9121234567"},                                 // Russia: the prefix is 8
		{"7", "8001234567", "8001234567"},                                  // … which begins numbers too
		{"7", "88001234567", "8001234567"},                                 //
		{"36", "06201234567", "201234567"},                                 // Hungary
		{"36", "0201234567", ""},                                           //
		{"1", "12125550100", "2125550100"},                                 // United States
		{"375", "80291234567", "291234567"},                                // Belarus: 80, and 8
		{"370", "061234567", "61234567"}, {"370", "861234567", "61234567"}, // Lithuania: 0, and 8
		{"598", "099123456", "99123456"}, {"598", "000401234", "000401234"}, {"34", "0", ""}, // Uruguay, Spain
		{"44", "02079460958", "2079460958"}, {"34", "0612345678", ""}, {"90", "0", ""}, {"90", "", ""},
		{"90", strings.Repeat("5", 64), ""},
	} {
		got, ok := plans()[c.dial].National(c.written)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.dial, c.written, got, ok, c.want)
		}
	}
}

// A number that lost a leading 0, or kept another prefix, is restored if it can be only one number.
func TestRestore(t *testing.T) {
	for _, c := range []struct{ dial, stored, want string }{
		{"225", "707070707", "0707070707"}, {"39", "612345678", "0612345678"}, {"7", "89121234567", "9121234567"},
		{"36", "6201234567", "201234567"}, {"90", "05321234567", "5321234567"},
		{"90", "5321234567", ""}, {"39", "331234567", ""}, {"225", "0707070707", ""}, {"90", "123", ""},
	} {
		got, ok := plans()[c.dial].Restore(c.stored)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.dial, c.stored, got, ok, c.want)
		}
	}
	it := plans()["39"]
	if !it.Ambiguous("331234567") || it.Ambiguous("612345678") || plans()["90"].Ambiguous("5321234567") {
		t.Error("only 39 331234567 can be two numbers")
	}
}

// Every plan is complete, and its number is never changed by a second reading.
func TestPlans(t *testing.T) {
	if len(plans()) < 200 || !strings.Contains(table, "of 20") || len(table) > 100_000 {
		t.Errorf("%d plans in %d bytes", len(plans()), len(table))
	}
	for dial, p := range plans() {
		if p.lengths == 0 || p.pattern() == nil {
			t.Errorf("%s has no numbers", dial)
		}
		if got, _, _ := Split(dial + "5321234567"); got != dial {
			t.Errorf("%s is read as %s", dial, got)
		}
	}
	if dial, number, p := Split("2105321"); dial != "" || number != "2105321" || p != nil {
		t.Errorf("an unassigned code is %s", dial)
	}
}
