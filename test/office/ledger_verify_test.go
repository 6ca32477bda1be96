package office

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Ledger verify names the first fault that was inserted directly into the database.
func TestLedgerVerifyNamesFirstFault(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Start().Stop()
		verify := func() blackbox.Output { t.Helper(); return s.Command("", "ledger", "verify") }
		if got := verify(); got.Code != 0 || !strings.Contains(got.Out, "is valid") {
			t.Fatalf("of an empty ledger: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		s.Exec("INSERT INTO asset VALUES (7, 10000000000000000)")
		s.Exec("INSERT INTO account VALUES ('user/7/ada', 'user', 'ada', 7, TRUE)")
		if got := verify(); got.Code != 0 || !strings.Contains(got.Out, "asset 7: 0 transfers between 1 accounts") {
			t.Fatalf("of one account: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
		s.Exec("UPDATE balance SET posted_lo = 1, seq = 1, version = 2 WHERE account_id = 'user/7/ada'")
		if got := verify(); got.Code != 1 || !strings.Contains(got.ErrOut, "account user/7/ada has 0.000000000000000001") {
			t.Errorf("of money from nowhere: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
	})
}
