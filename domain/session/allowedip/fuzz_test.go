package allowedip

import "testing"

// FuzzParse: an accepted network has no host bits, no zone and no second form.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"192.0.2.7", "192.0.2.0/24", "::ffff:192.0.2.0/120", "::ffff:0:0/90", "fe80::1%eth0",
		"::/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil || again != p || p.Masked() != p || p.Addr().Is4In6() || p.Addr().Zone() != "" {
			t.Fatalf("%q: %s and %s, %v", s, p, again, err)
		}
	})
}
