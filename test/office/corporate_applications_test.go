package office

import (
	"testing"

	"castellan/internal/blackbox"
)

// Operators add applications of companies, and each is audited (section 4.20 of the interface).
func TestCorporateApplications(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		for out, args := range map[string][]string{"1\n": {"Acme A.Ş.", "1234567890", "--status", "APPROVED"},
			"": {" ", "1"}} {
			got := s.Command("", append([]string{"corporate", "add"}, args...)...)
			if got.Out != out || (got.Code == 0) != (out != "") {
				t.Errorf("corporate add %q: exit %d, %s%s", args, got.Code, got.Out, got.ErrOut)
			}
		}
		for _, clause := range []string{"corporate_application WHERE status = 'APPROVED' AND tax_number = '1234567890'",
			"audit WHERE action = 'CORPORATE_APPLICATION_ADD' AND actor_id = 'operator' AND target = '1'"} {
			s.Has(1, clause)
		}
	})
}
