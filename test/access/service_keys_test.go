package access

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

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
			blackbox.Until(t, 10*time.Second, fmt.Sprint("the key is answered ", want), func() bool {
				got, err := n.Try("GET", "/integration/events", nil, blackbox.Headers{"service-auth": header})
				return err == nil && got.Status == want
			})
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
