package access

import (
	"regexp"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Keys of scheduled clients are managed by the command line (D-AUTH-07). A key is shown once, stored as a hash
// and audited, and running nodes receive it.
func TestCronKeyCommand(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		if got := s.Says(0, "cron-key list"); got.Out != "" {
			t.Errorf("keys from nowhere: %s", got.Out)
		}
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
