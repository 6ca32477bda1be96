package user

import (
	"strings"
	"testing"
)

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
		if again, err := CanonicalMail(got); err != nil || again != got {
			t.Fatalf("%q: %q and %q, %v", s, got, again, err)
		}
		odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r >= 'A' && r <= 'Z' }
		if len(got) > maxMailBytes || strings.Count(got, "@") != 1 || strings.ContainsFunc(got, odd) {
			t.Fatalf("%q is taken as %q", s, got)
		}
	})
}
