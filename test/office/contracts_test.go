package office

import (
	"testing"

	"castellan/internal/blackbox"
)

// A new installation has two contracts. The command line adds others, once each and audited (D-CON-01).
func TestContractCommand(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		for _, c := range []struct {
			args []string
			code int
			out  string
		}{
			{[]string{"add", "SALES", "Distance sales", "--version", "2026-1", "--passive"}, 0, "3\n"},
			{[]string{"add", "SALES", "Again"}, 1, ""},
			{[]string{"add", "sales", "x"}, 1, ""},
			{[]string{"add", "EMPTY", ""}, 1, ""},
			{[]string{"list"}, 0, "1\tTERMS_OF_USE\t-\tTerms of use\n2\tPRIVACY\t-\tPrivacy notice\n" +
				"3\tSALES\t2026-1\tDistance sales\n"},
		} {
			got := s.Command("", append([]string{"contract"}, c.args...)...)
			if got.Code != c.code || got.Out != c.out || c.code != 0 && got.ErrOut == "" {
				t.Errorf("contract %q: exit %d, %s%s", c.args, got.Code, got.Out, got.ErrOut)
			}
		}
		for clause, want := range map[string]int{
			"contract WHERE active": 2,
			"audit WHERE action = 'CONTRACT_ADD' AND actor_id = 'operator' AND target = 'SALES'": 1,
		} {
			s.Has(want, clause)
		}
	})
}
