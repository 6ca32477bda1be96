package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Keys of scheduled clients are managed by the command line (D-AUTH-07). A key is shown once, stored as a hash
// and audited, and running nodes receive it.
func TestCronKeyCommand(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		run := func(code int, args ...string) blackbox.Output {
			t.Helper()
			got := s.Command("", append([]string{"cron-key"}, args...)...)
			if got.Code != code {
				t.Fatalf("cron-key %v: exit %d, want %d: %s%s", args, got.Code, code, got.Out, got.ErrOut)
			}
			return got
		}
		if got := run(0, "list"); got.Out != "" {
			t.Errorf("keys from nowhere: %s", got.Out)
		}
		header := strings.TrimSpace(run(0, "add", "rates").Out)
		name, secret, _ := strings.Cut(header, ".")
		if name != "rates" || len(secret) < 43 {
			t.Fatalf("%q is not <client>.<secret of 32 bytes>", header)
		}
		second := strings.TrimSpace(run(0, "add", "settlement-2").Out)
		if strings.HasSuffix(second, secret) {
			t.Error("two keys share a secret")
		}
		if got := run(1, "add", "rates"); !strings.Contains(got.ErrOut, "already") ||
			strings.Contains(got.Out+got.ErrOut, secret) {
			t.Errorf("the name again: %s%s", got.Out, got.ErrOut)
		}
		run(1, "add", "no.dots")
		got := run(0, "list")
		if lines := strings.Split(strings.TrimSpace(got.Out), "\n"); len(lines) != 2 ||
			!strings.HasPrefix(lines[0], "rates\t20") ||
			!strings.HasPrefix(lines[1], "settlement-2\t20") {
			t.Errorf("list: %s", got.Out)
		}
		if strings.Contains(got.Out, secret) {
			t.Error("the list shows a secret")
		}
		if hits := blackbox.Find(s.AtRest(), secret); len(hits) > 0 {
			t.Errorf("the secret is kept in %v", hits)
		}
		run(0, "remove", "rates")
		if got := run(1, "remove", "rates"); !strings.Contains(got.ErrOut, `"rates"`) {
			t.Errorf("removed twice: %s", got.ErrOut)
		}
		if got := run(0, "list"); strings.Contains(got.Out, "rates\t") {
			t.Errorf("list after the removal: %s", got.Out)
		}
		for clause, want := range map[string]int{"cron_key": 1, "change WHERE topic = 'cron'": 3,
			"audit WHERE action = 'CRON_KEY_ADD' AND actor_id = 'operator'": 2, "audit WHERE action = 'CRON_KEY_REMOVE' AND " +
				"target = 'rates'": 1} {
			if n := s.Count(clause); n != want {
				t.Errorf("%d rows in %s, want %d", n, clause, want)
			}
		}
		s.Succeeds("", "audit", "verify")
	})
}
