package access

import (
	"regexp"
	"strings"
	"testing"
	"time"

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
		storetest.Lacks(t, s.Says(0, "cron-key list").Out, "rates\t", "list after the removal")
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

// Keys of service clients are managed by the command line (D-INT-01). A key is shown once, stored as a hash
// and audited. A running node accepts, rotates or refuses it within a second.
func TestServiceKeyCommand(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		key := func(line string) string {
			t.Helper()
			value, found := strings.CutPrefix(strings.TrimSpace(s.Says(0, line).Out), "key: wallet.")
			if !found || len(value) < 43 {
				t.Fatalf("%s did not print key: wallet.<secret>", line)
			}
			return "wallet." + value
		}
		answers := func(header string, want int) {
			t.Helper()
			n.Awaits(t, 10*time.Second, want, "GET", "/integration/events", nil, blackbox.Headers{"service-auth": header})
		}
		const add = "service-key add --role admin --name "
		first := key(add + "wallet")
		answers(first, 200)
		s.Says(1, add+"wallet", "already")
		s.Says(1, add+"no.dots")
		s.Says(1, "service-key add --name other --role nothing", "role")
		s.Says(1, add+"other --ip 10.0.0.0/99")
		second := key("service-key rotate wallet")
		answers(second, 200)
		answers(first, 200)
		list := s.Says(0, "service-key list").Out
		if !strings.HasPrefix(list, "wallet\tadmin\tany address\t20") || strings.Count(list, "\n") != 1 {
			t.Errorf("list: %s", list)
		}
		for _, header := range []string{first, second} {
			_, secret, _ := strings.Cut(header, ".")
			if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 || strings.Contains(list, secret) {
				t.Errorf("the secret is kept in %v, listed as %s", hits, list)
			}
		}
		s.Says(0, "service-key remove wallet")
		answers(first, 401)
		answers(second, 401)
		s.Says(1, "service-key remove wallet", `"wallet"`)
		for _, action := range []string{"SERVICE_KEY_ADD", "SERVICE_KEY_ROTATE", "SERVICE_KEY_REMOVE"} {
			s.Has(1, "audit WHERE action = $1 AND actor_id = 'operator' AND target = 'wallet'", action)
		}
		s.Succeeds("", "audit", "verify")
	})
}

// The profile of the caller (REQ-USR-02, REQ-USR-07, REQ-TOTP-14): its two fields are current at every
// request, also after a change by the command line.
func TestUserProfileIsCurrent(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me := s.AddUser("user")
		who := n.Auth(t, me)
		shows := func(totp, prohibited bool) {
			t.Helper()
			var p map[string]bool
			n.Ok(t, "GET", "/user/user-profile", nil, who).Keys(t, "totp", "isWithdrawProhibited").Read(t, &p)
			if p["totp"] != totp || p["isWithdrawProhibited"] != prohibited {
				t.Errorf("the profile is %v, want totp %v and isWithdrawProhibited %v", p, totp, prohibited)
			}
		}
		shows(false, false)
		s.Succeeds("", "user", "withdrawals", me.Mail, "prohibit")
		shows(false, true)
		app := blackbox.Enrolled(t, n, me, who)
		shows(true, true)
		s.Succeeds("", "user", "withdrawals", me.Number(), "allow")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/deactivate", nil, who))
		n.Complete(t, f, f.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
		shows(false, false)
		s.Says(1, "user withdrawals absent@example.test allow")
		s.Has(2, "audit WHERE action = 'USER_WITHDRAWALS' AND user_id = $1", me.ID)
	})
}
