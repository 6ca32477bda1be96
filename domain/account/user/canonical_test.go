package user

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestCanonicalIsOneSpelling(t *testing.T) {
	for _, dial := range []string{"90", "+90", "0090", "090", " +90 ", "+0090", "٩٠", "\u200e+90\u202c", "９０"} {
		for _, number := range []string{"5321234567", "05321234567", "532 123 45 67", "(0532) 123-45-67", " 532.123.45.67 ",
			"0 532 123 4567", "[532]123–4567", "٠٥٣٢١٢٣٤٥٦٧", "۵۳۲۱۲۳۴۵۶۷", "５３２１２３４５６７", "532\u202f123\u200b45\u00a067",
			"+90 532 123 45 67", "0090 532 123 45 67", "＋90（532）123‑45‑67"} {
			got, err := Canonical(dial, number)
			if err != nil || got != "+905321234567" {
				t.Errorf("%q %q: %q, %v", dial, number, got, err)
			}
		}
	}
}

// A number in international form is never changed; a national one is read by the plan of its country.
func TestCanonicalByCountry(t *testing.T) {
	for _, c := range []struct{ dial, number, want string }{
		{"225", "0707070707", "+2250707070707"}, {"39", "0331234567", "+390331234567"}, {"39", "331234567", "+39331234567"},
		{"39", "+390331234567", "+390331234567"}, {"7", "8 912 123-45-67", "+79121234567"},
		{"7", "+7 800 123 45 67", "+78001234567"}, {"36", "06 20 123 4567", "+36201234567"},
		{"39", "0039 06 1234 5678", "+390612345678"}, {"1684", "6331234", "+16846331234"}, {"999", "01234", "+99901234"},
	} {
		storetest.Equal(t, storetest.Value(Canonical(c.dial, c.number))(t), c.want, c.dial, c.number)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, c := range []struct{ dial, number, field string }{
		{"", "5321234567", "countryCode"},
		{"0", "5321234567", "countryCode"},
		{"+", "5321234567", "countryCode"},
		{"++90", "5321234567", "countryCode"},
		{"TR", "5321234567", "countryCode"},
		{"90000", "5321234567", "countryCode"},
		{"90", "", "phoneNumber"},
		{"90", "0", "phoneNumber"},
		{"90", "532123456", "phoneNumber"}, // a digit is missing
		{"90", "53212345678", "phoneNumber"},
		{"90", "12345678901234", "phoneNumber"}, // 16 digits in all
		{"90", "+4915123456789", "phoneNumber"}, // of another country
		{"90", "004915123456789", "phoneNumber"},
		{"225", "707070707", "phoneNumber"}, {"44", "+44 020 7946 0958", "phoneNumber"},
		{"90", "+90+5321234567", "phoneNumber"},
		{"90", "532123456a", "phoneNumber"},
		{"90", "5321234567\x00", "phoneNumber"},
		{"999", "123", "phoneNumber"},
	} {
		got, err := Canonical(c.dial, c.number)
		e, _ := err.(*fault.Error)
		if e == nil || e.Code != fault.InvalidField || e.Field != c.field {
			t.Errorf("%q %q: %q, %v; want a fault of %s", c.dial, c.number, got, err, c.field)
		}
	}
}

// An account of 0.9 is found by what its owner writes, whatever the plan of the country says.
func TestLookUp(t *testing.T) {
	for _, c := range []struct{ dial, number, want, former string }{
		{"90", "0532 123 45 67", "+905321234567", ""}, {"90", "5321234567", "+905321234567", ""},
		{"225", "0707070707", "+2250707070707", "+225707070707"},
		{"225", "+225 0707070707", "+2250707070707", "+225707070707"},
		{"7", "89121234567", "+79121234567", "+789121234567"}, {"36", "06201234567", "+36201234567", "+366201234567"},
		{"225", "707070707", "+225707070707", ""}, {"90", "12345", "+9012345", ""}, // stored without a check
	} {
		who, problems := LookUp(&c.dial, &c.number, nil)
		if len(problems) > 0 || who.Phone != c.want || who.Former != c.former {
			t.Errorf("%s %s: %+v, %v", c.dial, c.number, who, problems)
		}
	}
	for e164, want := range map[string]string{"+2250707070707": "+225707070707", "+79121234567": "+79121234567",
		"+900000000001": "+900000000001"} {
		storetest.Equal(t, FormerOf(e164), want, e164)
	}
}

func TestCanonicalMail(t *testing.T) {
	for in, want := range map[string]string{
		"a@b.co": "a@b.co", "  User.Name+tag@EXAMPLE.com\n": "user.name+tag@example.com", "x@localhost": "x@localhost",
		"a@MÜLLER.de": "a@xn--mller-kva.de", "a@mu\u0308ller.de": "a@xn--mller-kva.de",
		"a@çiçek.com.tr": "a@xn--iek-1lab.com.tr",
		"a@مثال.إختبار":  "a@xn--mgbh0fb.xn--kgbechtv", "a@xn--mller-kva.de": "a@xn--mller-kva.de",
		strings.Repeat("a", 248) + "@bb.co": strings.Repeat("a", 248) + "@bb.co", // 254 bytes
	} {
		storetest.Equal(t, storetest.Value(CanonicalMail(in))(t), want, in)
	}
	for _, in := range []string{"", "a", "@b.co", "a@", "a@b@c.co", "a b@c.co", "a@b..co", "a@.co", "a@b.", "a\x00@b.co",
		"a@b.co\r\nbcc:x", "\"a\"@b.co",
		"ａ@b.co", "a@ﬁn.co", "İ@b.co", "ü@b.co", "a@ü\u200b.co", "a@ü\u200d.co", "a@-ü.co", "a@ü..co", "a@ｂ.co", "a@ü_b.co",
		"a@b@ü.co", strings.Repeat("a", 249) + "@bb.co"} {
		storetest.Wants(t, storetest.Err(CanonicalMail(in)), fault.InvalidField, in)
	}
}

// A canonical number is unchanged, and the result contains only "+" and digits.
func FuzzPhoneCanon(f *testing.F) {
	f.Add("90", "532 123 45 67")
	f.Add("+1", "(0)684-1234")
	f.Fuzz(func(t *testing.T, dial, number string) {
		got, err := Canonical(dial, number)
		if err != nil {
			return
		}
		if got[0] != '+' || !digits(got[1:]) || got[1] == '0' || len(got) > 16 {
			t.Fatalf("%q %q: %q", dial, number, got)
		}
		code, _ := DialCode(dial)
		storetest.Equal(t, storetest.Value(Canonical(code, got))(t), got)
	})
}

func TestAddValidate(t *testing.T) {
	ok := Add{User: User{Phone: "+905321234567", Email: "a@b.co"}}
	storetest.Must(t, ok.Validate())
	for _, bad := range []User{{}, {Phone: "905321234567"}, {Phone: "+"}, {Phone: "+90 5"}, {Email: "A@b.co"},
		{Email: "a"}, {Phone: "+905321234567", Email: " a@b.co"}} {
		storetest.Wants(t, (Add{User: bad}).Validate(), fault.InvalidField, bad)
	}
}

// Every sent part that is malformed is named; missing parts are not.
func TestIdentify(t *testing.T) {
	sent := func(s string) *string { return &s }
	for _, c := range []struct {
		code, phone, mail *string
		want              Identifier
		fields            string
	}{
		{sent("0090"), sent("0532 123 45 67"), nil, Identifier{Phone: "+905321234567"}, ""},
		{nil, nil, sent(" A@Example.com "), Identifier{Mail: "a@example.com"}, ""},
		{sent("90"), sent("x"), nil, Identifier{}, "phoneNumber"},
		{sent("TR"), sent("x"), nil, Identifier{}, "countryCode phoneNumber"},
		{nil, sent("x"), sent("nobody"), Identifier{}, "phoneNumber email"},
		{sent("90"), nil, nil, Identifier{}, ""},
		{nil, nil, nil, Identifier{}, ""},
	} {
		who, problems := Identify(c.code, c.phone, c.mail)
		var fields []string
		for _, p := range problems {
			fields = append(fields, p.Field)
		}
		if who != c.want || strings.Join(fields, " ") != c.fields {
			t.Errorf("%+v with problems in %v, want %+v, %q", who, fields, c.want, c.fields)
		}
	}
}
