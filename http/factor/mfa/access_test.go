package mfa_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
	"castellan/persistence/kit"
)

// REQ-MFA-19, 20, D-2FA-12: a change holds for the next challenge.
func TestChangesTakeEffect(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		plan := func() string {
			p := s.live.Catalog().Plan(time.Now(), "LOGIN", "u1", "192.0.2.1")
			offer, err := p.Offer(func(n challenge.Name) bool { return n != challenge.PUSH })
			storetest.Must(t, err)
			out := fmt.Sprint(p.Required, " of")
			for _, m := range offer {
				out += fmt.Sprintf(" %s/%s/%d/%d", m.Name, m.Template, m.LifetimeMs, m.RenewMs)
			}
			return out
		}
		wants := func(want string) {
			t.Helper()
			if got := plan(); got != want {
				t.Errorf("plans %s\n want %s", got, want)
			}
		}
		const builtIn = "1 of TOTP//0/0 SMS//120000/60000 MAIL//120000/60000"
		wants(builtIn)
		id := s.add(`{"actionCode":"LOGIN","name":"n","expireAt":0,"required":2,"methods":[["MAIL","m"],["SMS"],` +
			`["PUSH"]]}`)
		wants("2 of MAIL/m/120000/60000 SMS//120000/60000")
		s.Wants("PATCH methods", `{"methodCode":"MAIL","expireMs":90000,"renewStartMs":0}`, 200, `{}`)
		wants("2 of MAIL/m/90000/0 SMS//120000/60000")
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"required":1,"methods":[["TOTP"]]}`, id), 200, `{}`)
		wants("1 of TOTP//0/0")
		s.Wants("PATCH policies/common", fmt.Sprintf(`{"id":%d,"expireAt":1}`, id), 200, `{}`)
		wants(strings.Replace(builtIn, "MAIL//120000/60000", "MAIL//90000/0", 1))
	})
}

// Two administrators at once: one record, one winner.
func TestRacingWrites(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		for line, body := range map[string]string{
			"POST methods":         `{"methodCode":"PUSH_OTP","expireMs":90000,"renewStartMs":0}`,
			"POST actions":         `{"actionCode":"A1","title":{"en":"x"},"infoTableHeaders":{}}`,
			"POST policies/common": `{"actionCode":"LOGIN","name":"n","expireAt":0,"required":1,"methods":[["SMS"]]}`,
		} {
			var wg sync.WaitGroup
			var mu sync.Mutex
			count := map[int]int{}
			for range 6 {
				wg.Go(func() {
					status, _ := s.Call(line, body)
					mu.Lock()
					count[status]++
					mu.Unlock()
				})
			}
			wg.Wait()
			if count[200] != 1 || count[409] != 5 {
				t.Errorf("%s: %v", line, count)
			}
		}
		if rows, err := kit.NewAudit(s.db).Verify(t.Context(), []byte("audit key of the test")); rows != 3 ||
			err != nil {
			t.Errorf("%d audit rows, %v", rows, err) // one per change, none for a refusal
		}
	})
}
