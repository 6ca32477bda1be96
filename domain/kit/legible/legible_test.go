package legible_test

import (
	"testing"
	"unicode"

	"castellan/domain/factor/mfa"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/office/staffrequest"
	"castellan/domain/people/corporate"
	"castellan/domain/people/dropdown"
	"castellan/domain/people/registration"
	"castellan/domain/proof/device"
)

// Every character of the properties is refused and escaped. Letters, digits, marks and currency signs are not.
func TestHiddenCharactersByProperty(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		// Default_Ignorable_Code_Point as DerivedCoreProperties.txt of Unicode derives it.
		ignorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector) &&
			!unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark) &&
			(r < 0xfff9 || r > 0xfffb) && (r < 0x13430 || r > 0x13440)
		hides := ignorable || unicode.In(r, unicode.Bidi_Control, unicode.Cc, unicode.Zl, unicode.Zp)
		text := "a" + string(r) + "b"
		valid := legible.Valid(text)
		if hides && valid || !valid && !legible.Valid(legible.Escape(text)) || valid && legible.Escape(text) != text {
			t.Errorf("%U: valid %t, escaped %q", r, valid, legible.Escape(text))
		}
		if !hides && !valid &&
			unicode.In(r, unicode.Lu, unicode.Ll, unicode.Nd, unicode.Mc, unicode.P, unicode.Sc, unicode.Zs) {
			t.Errorf("%U is refused", r)
		}
	}
}

// A joiner is valid where its script needs it, and nowhere else. Invalid texts are shown escaped.
func TestLegibleTexts(t *testing.T) {
	for text, want := range map[string]string{
		"Pay out 25 EUR": "", "Öğrenci İşleri": "", "دفع ٢٥": "", "नमस्ते": "", "支払い": "", "": "", "\u06dd7": "",
		"می\u200cخواهم ۵":      "", // Persian: a non-joiner between joining letters
		"क्\u200dष, क्\u200cष": "", // Devanagari: both after a virama
		"pay\u200cpal":         "pay[U+200C]pal",
		"می\u200c خواهم":       "می[U+200C] خواهم",
		"\u200dक":              "[U+200D]क",
		"👩\u200d💻":             "👩[U+200D]💻",
		"a\u00adb":             "a[U+00AD]b",
		"\u061cx":              "[U+061C]x",
		"a\U000e0041":          "a[U+E0041]",
		"1\u180e2":             "1[U+180E]2",
		"bc1q\n\u202etag":      "bc1q[U+000A][U+202E]tag",
		"a\u3164\u2800b":       "a[U+3164][U+2800]b",
		"a\xffb":               "a[U+FFFD]b",
		"a\ufffdb":             "",
		"می\u200cخواهم\u200e pay\u200cpal": "می\u200cخواهم[U+200E] pay[U+200C]pal",
	} {
		storetest.Equal(t, legible.Valid(text), (want == ""), text, want != "")
		if want == "" {
			want = text
		}
		storetest.Equal(t, legible.Escape(text), want, text)
	}
	if legible.Line(" \u00a0") || legible.Line("a\tb") || !legible.Line(" a") {
		t.Error("a line has a character that is seen, and no other control than spaces")
	}
}

// The checks of the slices judge their texts by the one rule.
func TestChecksOfSlices(t *testing.T) {
	rule := firewall.Rule{AppID: "API", Label: "a", Type: firewall.Blacklist, EntityType: firewall.IP, AllEntities: true,
		AllResources: true, Status: firewall.Active}
	for field, check := range map[string]func(text string) error{
		"name":    func(s string) error { return contract.Contract{Code: "A1", Name: s}.Check() },
		"version": func(s string) error { return contract.Contract{Code: "A1", Name: "n", Version: s}.Check() },
		"nameTr": func(s string) error {
			return dropdown.Option{Group: "GG", Code: "A1", English: "e", Turkish: s, Arabic: "a"}.Check()
		},
		"title": func(s string) error { return mfa.Action{Code: "A1", Title: mfa.Text{"en": s}}.Check() },
		"brand": func(s string) error { return device.Registration{Brand: s}.Check() },
		"companyName": func(s string) error {
			return corporate.Application{CompanyName: s, TaxNumber: "1", Status: "s"}.Check()
		},
		"user_name": func(s string) error {
			return staffrequest.VPN{Request: staffrequest.Request{Type: "t", Status: staffrequest.Pending}, UserName: s}.Check()
		},
		"label": func(s string) error {
			r := rule
			r.Label = s
			return r.Check()
		},
		"externalId": func(s string) error {
			var ps fault.Problems
			registration.CheckExternalID(&ps, "externalId", s)
			return fault.All(ps)
		},
	} {
		storetest.Must(t, check("Seen ٢"))
		for _, hidden := range []string{"\u00ad", "\u061c", "\u180e", "\U000e0041", "\u3164", "\u2800", "\u202e",
			"\u200d", "\n"} {
			if err := check("a" + hidden + "b"); err == nil {
				t.Errorf("%s has %q", field, hidden)
			} else {
				storetest.WantsFields(t, err, field)
			}
		}
	}
}
