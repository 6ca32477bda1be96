package user

import (
	"strings"
	"testing"

	"castellan/domain/kit/fault"
)

func TestCanonicalIsOneSpelling(t *testing.T) {
	for _, dial := range []string{"90", "+90", "0090", "090", " +90 ", "+0090"} {
		for _, number := range []string{"5321234567", "05321234567", "532 123 45 67", "(0532) 123-45-67", " 532.123.45.67 ",
			"0 532 123 4567", "[532]123–4567"} {
			got, err := Canonical(dial, number)
			if err != nil || got != "+905321234567" {
				t.Errorf("%q %q: %q, %v", dial, number, got, err)
			}
		}
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
		{"9 0", "5321234567", "countryCode"},
		{"٩٠", "5321234567", "countryCode"},
		{"90", "", "phoneNumber"},
		{"90", "0", "phoneNumber"},
		{"90", "123", "phoneNumber"},
		{"90", "12345678901234", "phoneNumber"}, // 16 digits in all
		{"90", "+905321234567", "phoneNumber"},
		{"90", "532123456a", "phoneNumber"},
		{"90", "５３２１２３４５６７", "phoneNumber"},
		{"90", "5321234567\x00", "phoneNumber"},
	} {
		got, err := Canonical(c.dial, c.number)
		e, _ := err.(*fault.Error)
		if e == nil || e.Code != fault.InvalidField || e.Field != c.field {
			t.Errorf("%q %q: %q, %v; want a fault of %s", c.dial, c.number, got, err, c.field)
		}
	}
	for _, number := range []string{"1234", "1234567890123"} { // the bounds themselves
		if _, err := Canonical("90", number); err != nil {
			t.Errorf("%q: %v", number, err)
		}
	}
}

func TestCanonicalMail(t *testing.T) {
	for in, want := range map[string]string{
		"a@b.co": "a@b.co", "  User.Name+tag@EXAMPLE.com\n": "user.name+tag@example.com", "x@localhost": "x@localhost",
		strings.Repeat("a", 248) + "@bb.co": strings.Repeat("a", 248) + "@bb.co", // 254 bytes
	} {
		if got, err := CanonicalMail(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "a", "@b.co", "a@", "a@b@c.co", "a b@c.co", "a@b..co", "a@.co", "a@b.", "a\x00@b.co",
		"a@b.co\r\nbcc:x", "\"a\"@b.co",
		"ａ@b.co", "a@ﬁn.co", "İ@b.co", strings.Repeat("a", 249) + "@bb.co"} {
		if got, err := CanonicalMail(in); fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%q: %q, %v", in, got, err)
		}
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
		if again, err := Canonical(code, "0"+strings.TrimPrefix(got, "+"+code)); err != nil || again != got {
			t.Fatalf("%q is not stable: %q, %v", got, again, err)
		}
	})
}

func TestAddValidate(t *testing.T) {
	ok := Add{User: User{Phone: "+905321234567", Email: "a@b.co"}}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []User{{}, {Phone: "905321234567"}, {Phone: "+"}, {Phone: "+90 5"}, {Email: "A@b.co"},
		{Email: "a"}, {Phone: "+905321234567", Email: " a@b.co"}} {
		if err := (Add{User: bad}).Validate(); fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%+v: %v", bad, err)
		}
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
