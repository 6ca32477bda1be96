package slug_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"castellan/domain/kit/slug"
	"castellan/domain/kit/storetest"
)

// D-ANN-01: Turkish letters are folded; a taken slug gets a number.
func TestSlugs(t *testing.T) {
	for title, want := range map[string]string{
		"Yeni Şube": "yeni-sube", "ÇĞİÖŞÜ çğıöşü Iı": "cgiosu-cgiosu-ii", "S\u0327ube": "sube", "  --A.b__c!  ": "a-b-c",
		"Rüzgâr": "ruzgar", "İstanbul'da %50_": "istanbul-da-50", "فرع جديد": "فرع-جديد", "!?": "",
		strings.Repeat("ab ", 60): strings.Repeat("ab-", 39) + "ab", "<script>": "script", "../../x": "x",
	} {
		storetest.Equal(t, slug.Of(title), want, title)
	}
	taken := []string{"a", "a-2", "a-4", "a-b"}
	for title, want := range map[string]string{"A": "a-3", "b": "b", "a b": "a-b-2"} {
		storetest.Equal(t, slug.Free(slug.Of(title), taken), want, title)
	}
}

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
