package office

import (
	"testing"

	"castellan/internal/blackbox"
)

// Ledger verify names the first fault that was inserted directly into the database.
func TestLedgerVerifyNamesFirstFault(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Start().Stop()
		s.Says(0, "ledger verify", "is valid")
		s.Exec("INSERT INTO asset VALUES (7, 10000000000000000)")
		s.Exec("INSERT INTO account VALUES ('user/7/ada', 'user', 'ada', 7, TRUE)")
		s.Says(0, "ledger verify", "asset 7: 0 transfers between 1 accounts")
		s.Exec("UPDATE balance SET posted_lo = 1, seq = 1, version = 2 WHERE account_id = 'user/7/ada'")
		s.Says(1, "ledger verify", "account user/7/ada has 0.000000000000000001")
	})
}
