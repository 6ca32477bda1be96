package legible

import (
	"testing"
	"unicode"

	"castellan/domain/kit/storetest"

	"golang.org/x/text/unicode/norm"
)

// Digits of every script are read; blanks and invisible marks are dropped; other characters and controls remain.
func TestTyped(t *testing.T) {
	for in, want := range map[string]string{
		"123456": "123456", "": "", " 123 456\t\n": "123456", "١٢٣٤٥٦": "123456", "۱۲۳۴۵۶": "123456", "１２３": "123",
		"१२३": "123", "𝟙𝟚𝟛": "123", "12\u00a034\u202f56": "123456", "\u200f\u2066123\u2069456\u200e": "123456",
		"12\u200b3\ufeff": "123", "1\u00ad2": "12", "1\u30002\u2800": "12", "1\u20602\ufe0f": "12",
		"12a": "12a", "12\x00": "12\x00", "12\xff": "12\ufffd", "½": "½", "Ⅷ": "Ⅷ", "+9-0": "+9-0", "-١٢.٥": "-12.5",
	} {
		storetest.Equal(t, Typed(in), want, in)
	}
	for in, want := range map[string]string{"12.50": "12.50", " \u200f١٢٫٥٠\u00a0": "12.50", "\u22121": "-1", "1 2": "1 2",
		"1\u20602": "12", "": "", "1\u066c000": "1\u066c000", "1,5": "1,5"} {
		storetest.Equal(t, Number(in), want, "number", in)
	}
	if n := testing.AllocsPerRun(10, func() { _ = Typed("+905321234567") }); n != 0 {
		t.Errorf("a plain text costs %v allocations", n)
	}
	seen := 0
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		digit, ok := digitOf(r)
		if !ok {
			continue
		}
		if seen++; digit < '0' || digit > '9' {
			t.Fatalf("%U is %q", r, digit)
		}
		if k := norm.NFKC.String(string(r)); len(k) == 1 && k != string(digit) {
			t.Errorf("%U is %q, not %s", r, digit, k)
		}
		if _, before := digitOf(r - 1); !before && digit != '0' {
			t.Errorf("%U begins a script with %q", r, digit)
		}
	}
	if seen < 600 {
		t.Errorf("only %d digits are known", seen)
	}
}
