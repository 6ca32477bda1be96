package money_test

import (
	"strings"
	"sync"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// In races each blockage has one effect, nothing is taken that is locked, and no read
// sees less than nothing.
func TestBlockagesInARace(t *testing.T) {
	blockageBoth(t, func(s blockageSite) {
		ids := make([]string, 24)
		var wg sync.WaitGroup
		race := func(n int, do func(i int)) {
			for i := range n {
				wg.Go(func() { do(i) })
			}
			wg.Wait()
		}
		race(24, func(i int) {
			if i%3 == 0 {
				if err := s.pay("jane", "USDT/ETH", "-0.5"); err != nil && fault.CodeOf(err) != fault.InvalidState {
					t.Error(err)
				}
			}
			ids[i] = s.block("jane", "USDT", "0.3", 1)
			b, err := s.l.Balance(s.Context(), "jane", s.account("jane", "USDT/ETH").Asset)
			if err != nil || b.Available().Sign() < 0 || b.Posted.Sign() < 0 {
				t.Errorf("%+v, %v", b, err)
			}
		})
		s.lists(list+"?userId=jane", strings.Repeat("1", 24))
		// Three at once for each: one is released, deleted and both.
		race(72, func(i int) {
			line, body := remove, `{"id":"`+ids[i%24]+`","status":"released"}`
			if i/24 == 0 {
				line = update
			}
			if status, got := s.Call(line, body); status != 200 && status != 404 {
				t.Errorf("%s %d %s", line, status, got)
			}
		})
		s.lists(list+"?userId=jane", "")
		for _, pair := range []string{"USDT/ETH", "USDT/TRX"} {
			b, err := s.l.Balance(s.Context(), "jane", s.account("jane", pair).Asset)
			if err != nil || b.Locked.Sign() != 0 {
				t.Errorf("%+v, %v", b, err)
			}
		}
		n, err := s.db.Conn(t.Context()).NewSelect().Table("audit").Where("action = 'BLOCKAGE_DELETE'").Count(t.Context())
		if storetest.Must(t, err); n != 24 {
			t.Errorf("%d were deleted", n)
		}
		// A user without an account gets exactly one.
		race(12, func(int) { s.block("mark", "BTC", "1", 1) })
		s.has("mark", "BTC/BTC", "0 12 0")
	})
}
