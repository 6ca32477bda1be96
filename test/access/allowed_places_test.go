package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Networks are added to and removed from a list, and the list is cleared. Each network has one spelling. So are the
// countries of an account.
func TestPlacesOfAccountCommands(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		run := func(code int, want string, args ...string) {
			t.Helper()
			got := s.Command("", append([]string{"user", "allow-ip"}, args...)...)
			if got.Code != code || code == 0 && got.Out != want || code != 0 && !strings.Contains(got.ErrOut, want) {
				t.Errorf("%v: exit %d, %s%s, want %q", args, got.Code, got.Out, got.ErrOut, want)
			}
		}
		const everywhere = "no networks: all addresses are allowed\n"
		run(0, everywhere, demo.Mail)
		run(0, "192.0.2.0/24\n2001:db8::/32\n", demo.Mail, "192.0.2.99/24", "2001:DB8::/32")
		run(0, "192.0.2.0/24\n198.51.100.7/32\n2001:db8::/32\n", demo.Number(), "::ffff:198.51.100.7", "192.0.2.0/24")
		run(0, "192.0.2.0/24\n198.51.100.7/32\n2001:db8::/32\n", demo.Number())
		run(0, "198.51.100.7/32\n2001:db8::/32\n", demo.Number(), "192.0.2.1/24", "203.0.113.1", "--remove")
		run(0, "203.0.113.0/24\n", demo.Number(), "203.0.113.0/24", "--clear")
		run(0, everywhere, demo.Number(), "--clear")
		run(1, "neither an address nor a network", demo.Mail, "192.0.2.0/24", "somewhere")
		run(1, "--remove requires networks", demo.Mail, "--remove")
		run(1, "no account", "nobody", "192.0.2.1")
		s.Has(5, "audit WHERE action = 'USER_ALLOW_IP' AND actor_id = 'operator'")
		s.Exec(`UPDATE users SET countries = 'NL' WHERE email = $1`, demo.Mail)
		for _, want := range []string{"cleared NL\n", "nothing to clear"} {
			s.Says(0, "user clear-geofilter "+demo.Mail, want)
		}
		n.Stop()
	})
}
