package slug_test

import (
	"testing"
	"unicode/utf8"

	"castellan/domain/kit/slug"
)

// FuzzOf: a slug is a valid text without a slash, a dot or a space, and is its own slug.
func FuzzOf(f *testing.F) {
	f.Add("Çok Güzel: İş/Güç ../..")
	f.Add("e\u0301 ـ 日本")
	f.Fuzz(func(t *testing.T, title string) {
		s := slug.Of(title)
		if !utf8.ValidString(s) || s != slug.Of(s) {
			t.Fatalf("%q: %q and %q", title, s, slug.Of(s))
		}
		for _, r := range s {
			if r < 'a' && r != '-' && (r < '0' || r > '9') {
				t.Fatalf("%q gives %q", title, s)
			}
		}
	})
}
