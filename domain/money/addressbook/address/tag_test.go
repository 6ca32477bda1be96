package address_test

import (
	"strings"
	"testing"
	"unicode"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook/address"
)

// Each network has its form of tags; no tag is valid everywhere.
func TestTags(t *testing.T) {
	tags := address.Tags{"LTC": address.NoTag, "ATOM": address.MemoTag + "4"}
	for _, c := range []struct {
		network, valid, refused string
	}{
		{"XRP", "0 1 104723 4294967295", "abc 01 +1 -1 4294967296 1.0 0x1 １ 18446744073709551617"},
		{"ETH", "", "1 a"}, {"POLYGON", "", "1"}, {"BTC", "", "1"}, {"SOL", "", "1"}, {"TRX", "", "1"}, {"LTC", "", "1"},
		{"XLM", "a " + strings.Repeat("x", 28), strings.Repeat("x", 29)},
		{"TON", strings.Repeat("x", 120), strings.Repeat("x", 121)},
		{"ATOM", "abcd éé", "abcde ééé"},
		{"NEW", "merhaba " + strings.Repeat("x", 128), strings.Repeat("x", 129) + " a\u200bb a\u202eb a\u0000b \xff " +
			"a\ufeffb a\u00adb"},
	} {
		for tag := range strings.SplitSeq(c.valid, " ") {
			storetest.Equal(t, tags.Problem(c.network, tag), "", c.network, tag)
		}
		for tag := range strings.SplitSeq(c.refused, " ") {
			if tags.Problem(c.network, tag) == "" {
				t.Errorf("%s accepts %q", c.network, tag)
			}
		}
	}
	for _, spaced := range []string{"a b", "a\u00a0b", "a\u3000b", " a", "a\n", "a\u2028"} {
		if tags.Problem("NEW", spaced) == "" {
			t.Errorf("%q is accepted", spaced)
		}
	}
}

// FuzzTag: a valid tag is printable and short, and on networks with numbers it is its number.
func FuzzTag(f *testing.F) {
	for _, tag := range []string{"", "0", "007", "a\u202eb", "4294967296"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		var tags address.Tags
		if tags.Problem("NEW", tag) == "" {
			if len(tag) > 128 || strings.ContainsFunc(tag, func(r rune) bool {
				return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
			}) {
				t.Errorf("%q is valid", tag)
			}
		}
		if tag != "" && tags.Problem("XRP", tag) == "" && (strings.Trim(tag, "0123456789") != "" || len(tag) > 10 ||
			len(tag) > 1 && tag[0] == '0') {
			t.Errorf("%q is a number", tag)
		}
		if tag != "" && tags.Problem("ETH", tag) == "" {
			t.Errorf("%q is a tag of Ethereum", tag)
		}
	})
}

// FuzzCanonical: the canonical form of an address or a hash is its own, and the spellings of a hexadecimal number are
// one hash.
func FuzzCanonical(f *testing.F) {
	for _, text := range []string{"", "0x4A5e1E4b", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "0x0xab", "bitcoincash:q"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := address.Canonical(text)
		storetest.Equal(t, address.Canonical(c), c, text)
		if len(c)%2 == 0 && c != "" && strings.Trim(c, "0123456789abcdef") == "" {
			for _, spelt := range []string{"0x" + c, strings.ToUpper(c), " 0X" + c + "\n"} {
				if !address.Same(spelt, c) {
					t.Errorf("%q is not %q", spelt, c)
				}
			}
		}
	})
}
