package access

import (
	"regexp"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Keys of scheduled clients are managed by the command line (D-AUTH-07). A key is shown once, stored as a hash
// and audited, and running nodes receive it.
func TestCronKeyCommand(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		storetest.Equal(t, s.Says(0, "cron-key list").Out, "", "keys from nowhere")
		header := strings.TrimSpace(s.Says(0, "cron-key add rates").Out)
		name, secret, _ := strings.Cut(header, ".")
		if name != "rates" || len(secret) < 43 {
			t.Fatalf("%q is not <client>.<secret of 32 bytes>", header)
		}
		if strings.HasSuffix(strings.TrimSpace(s.Says(0, "cron-key add settlement-2").Out), secret) {
			t.Error("two keys share a secret")
		}
		again := s.Says(1, "cron-key add rates", "already")
		s.Says(1, "cron-key add no.dots")
		list := s.Says(0, "cron-key list").Out
		if !regexp.MustCompile(`^rates\t20.*\nsettlement-2\t20.*\n$`).MatchString(list) {
			t.Errorf("list: %s", list)
		}
		if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 ||
			strings.Contains(list+again.Out+again.ErrOut, secret) {
			t.Errorf("the secret is kept in %v, listed as %s", hits, list)
		}
		s.Says(0, "cron-key remove rates")
		s.Says(1, "cron-key remove rates", `"rates"`)
		if got := s.Says(0, "cron-key list"); strings.Contains(got.Out, "rates\t") {
			t.Errorf("list after the removal: %s", got.Out)
		}
		for clause, want := range map[string]int{"cron_key": 1, "change WHERE topic = 'cron'": 3,
			"audit WHERE action = 'CRON_KEY_ADD' AND actor_id = 'operator'": 2, "audit WHERE action = 'CRON_KEY_REMOVE' AND " +
				"target = 'rates'": 1} {
			s.Has(want, clause)
		}
		s.Succeeds("", "audit", "verify")
	})
}

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
		run(1, "no account", "unknown", "192.0.2.1")
		s.Has(5, "audit WHERE action = 'USER_ALLOW_IP' AND actor_id = 'operator'")
		s.Exec(`UPDATE users SET countries = 'NL' WHERE email = $1`, demo.Mail)
		for _, want := range []string{"cleared NL\n", "nothing to clear"} {
			s.Says(0, "user clear-geofilter "+demo.Mail, want)
		}
		n.Stop()
	})
}
