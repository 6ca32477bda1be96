package access

import (
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
		run := func(code int, args ...string) blackbox.Output {
			t.Helper()
			got := s.Command("", append([]string{"service-key"}, args...)...)
			if got.Code != code {
				t.Fatalf("service-key %v: exit %d, want %d: %s%s", args, got.Code, code, got.Out, got.ErrOut)
			}
			return got
		}
		key := func(args ...string) string {
			t.Helper()
			value, found := strings.CutPrefix(strings.TrimSpace(run(0, args...).Out), "key: wallet.")
			if !found || len(value) < 43 {
				t.Fatalf("%v did not print key: wallet.<secret>", args)
			}
			return "wallet." + value
		}
		answers := func(header string, want int) {
			t.Helper()
			deadline := time.Now().Add(10 * time.Second)
			for {
				got, err := n.Try("GET", "/integration/events", nil, blackbox.Headers{"service-auth": header})
				if err == nil && got.Status == want {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("the key is answered %s, want %d", got, want)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
		first := key("add", "--name", "wallet", "--role", "admin")
		answers(first, 200)
		if got := run(1, "add", "--name", "wallet", "--role", "admin"); !strings.Contains(got.ErrOut, "already") {
			t.Errorf("the name again: %s%s", got.Out, got.ErrOut)
		}
		run(1, "add", "--name", "no.dots", "--role", "admin")
		if got := run(1, "add", "--name", "other", "--role", "nothing"); !strings.Contains(got.ErrOut, "role") {
			t.Errorf("an unknown role: %s", got.ErrOut)
		}
		run(1, "add", "--name", "other", "--role", "admin", "--ip", "10.0.0.0/99")
		second := key("rotate", "wallet")
		answers(second, 200)
		answers(first, 200)
		list := run(0, "list").Out
		if !strings.HasPrefix(list, "wallet\tadmin\tany address\t20") || strings.Count(list, "\n") != 1 {
			t.Errorf("list: %s", list)
		}
		for _, header := range []string{first, second} {
			_, secret, _ := strings.Cut(header, ".")
			if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 || strings.Contains(list, secret) {
				t.Errorf("the secret is kept in %v, listed as %s", hits, list)
			}
		}
		run(0, "remove", "wallet")
		answers(first, 401)
		answers(second, 401)
		if got := run(1, "remove", "wallet"); !strings.Contains(got.ErrOut, `"wallet"`) {
			t.Errorf("removed twice: %s", got.ErrOut)
		}
		for action, want := range map[string]int{"SERVICE_KEY_ADD": 1, "SERVICE_KEY_ROTATE": 1, "SERVICE_KEY_REMOVE": 1} {
			if n := s.Count("audit WHERE action = '" + action + "' AND actor_id = 'operator' AND target = 'wallet'"); n != want {
				t.Errorf("%d rows of %s, want %d", n, action, want)
			}
		}
		s.Succeeds("", "audit", "verify")
	})
}
