package user

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// Names are found without accents, in any spelling of the letters.
func TestFold(t *testing.T) {
	for in, want := range map[string]string{"Ayşe ÖZTÜRK": "ayse ozturk", "IŞIK İpek ışık": "isik ipek isik",
		"Søren Łukasz Đorđe": "soren lukasz dorde", "Strauß Æsir œuvre Þór ħ": "strauss aesir oeuvre thor h",
		"Jose\u0301 Nguyễn": "jose nguyen", "ﬁn Ｗｉｄｅ": "fin wide", "١٢ a\u200bb": "12 ab", "محمد": "محمد", "Plain": "plain",
		"I\u0307": "i", "ẞ": "ss", "Ǿ": "o", "A\u00a0B": "a b"} {
		storetest.Equal(t, Fold(in), want, in)
		storetest.Equal(t, Fold(want), want, "is folded again to")
	}
}

// Each word begins a word of the name or the address; three digits stand anywhere in the number.
func TestSearch(t *testing.T) {
	u := User{Name: "Ayşe Nur", Surname: "Demir-Öztürk", Email: "ayse@demo.castellan.test", Phone: "+905320001234"}
	x := IndexOf(u)
	for text, want := range map[string]bool{
		"ayse": true, "ozturk": true, "demir ayşe": true, "AYSE@demo": true, "532 000": true, "0532 000 12": true,
		"+90 532": true, "٥٣٢": true, "234": true, "nur 1234": true, "demo.cast": true, "castellan.t": true,
		"Demir-Öz": true, "o'": true, "yse": false, "mir": false, "12": false, "1": false, "533 000": false,
		"ayse ali": false, "ayse 999": false, "@demo": true, strings.Repeat("a", 300): false,
	} {
		s, ok := ParseSearch(text)
		storetest.Equal(t, ok && s.Matches(x), want, text, s, "in", x)
	}
	for _, text := range []string{"", " ", "%", "'\"!", "\u200b"} {
		if s, ok := ParseSearch(text); ok {
			t.Errorf("%q is a search: %+v", text, s)
		}
	}
	if s, _ := ParseSearch(strings.Repeat("a ", 50)); len(s.Words) != maxSearchWords {
		t.Errorf("%d words", len(s.Words))
	}
}

// A placeholder can be stored and never receives messages (D-COR-02).
func TestPlaceholder(t *testing.T) {
	for n, want := range map[int64]string{1: "+900000000001", 999_999_999: "+900999999999"} {
		u := User{ID: "u", Email: "u@example.com"}
		u.SetPlaceholder(n)
		if u.CountryCode != "90" || u.Phone != want || u.Reachable() != "" || u.Account().Phone != "" {
			t.Errorf("%d: %+v, reachable as %q", n, u, u.Reachable())
		}
		storetest.Must(t, Add{User: u}.Validate())
	}
	for _, phone := range []string{"+905320000000", "+9", "+449000000000"} {
		storetest.Equal(t, (User{Phone: phone}).Reachable(), phone, "is reachable as")
	}
}

// FuzzMail: an accepted address is in its one spelling, in ASCII only.
func FuzzMail(f *testing.F) {
	for _, seed := range []string{"A@b.co", " a@b", "a@b@c", "K@b.co", "a@b..c", "<a@b.co>", "a@b.co\r\nBcc: x@y.z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := CanonicalMail(s)
		if err != nil {
			return
		}
		storetest.Equal(t, storetest.Value(CanonicalMail(got))(t), got, s)
		odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r >= 'A' && r <= 'Z' }
		if len(got) > maxMailBytes || strings.Count(got, "@") != 1 || strings.ContainsFunc(got, odd) {
			t.Fatalf("%q is taken as %q", s, got)
		}
	})
}
