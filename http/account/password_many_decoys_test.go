package account_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/http/apitest/flowtest"
)

// Many known phones and many unknown ones, in any order. The bytes of an answer, its headers
// and its statements depend on the request; the length of a sealed text depends on the
// address; on nothing else (SEC-12, D-PWD-01). Users have their mail at places that decoys
// know nothing of.
func TestManyDecoysLookLikeManyAccounts(t *testing.T) {
	const each, addressed = 50, 25 // the length of the address in decoys
	providers := []string{"bigbank.com.tr", "proton.me", "uni-ankara.edu.tr", "a.co", "gmail.com"}
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		sameLength := func(n int) bool { return n%2 == 0 || n >= each }
		for n := range each {
			w.add(n, func(a *user.Add) {
				domain, digits := providers[n%len(providers)], 2+n/10
				if sameLength(n) {
					digits = addressed - 2 - len(domain)
				}
				a.Email = fmt.Sprintf("%c%0*d@%s", 'a'+n%26, digits, n, domain)
			})
		}
		flows := make([]flow, 2*each)
		step := func(what string, writes bool, do func(n int) answer) {
			t.Helper()
			var answers, rows string // of the first one
			for _, n := range rand.Perm(2 * each) {
				var a answer
				statements := w.Trace(func() { a = do(n) })
				if writes != (len(statements) > 0) {
					t.Fatalf("%s: %d statements were traced", what, len(statements))
				}
				now := flowtest.Seen(a, nil)
				if answers = cmp.Or(answers, now); answers != now {
					t.Fatalf("%s: %d (known below %d)\n%s\n%s", what, n, each, answers, now)
				}
				if !sameLength(n) {
					continue
				}
				now = flowtest.Seen(a, statements)
				if rows = cmp.Or(rows, now); rows != now {
					t.Fatalf("%s: %d (known below %d)\n%s\n%s", what, n, each, rows, now)
				}
			}
		}
		step("reset", true, func(n int) answer {
			a := w.ask(n, "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", 100+n/100, 100+n%100))
			flows[n] = w.Flow(a)
			if sms, mail := flows[n].Methods["SMS"].Hint, flows[n].Methods["MAIL"].Hint; mail != "" ||
				sms != fmt.Sprintf("+90********%02d", n%100) {
				t.Fatalf("%d: hints %q and %q", n, sms, mail)
			}
			return a
		})
		step("result", false, func(n int) answer { return w.Result(flows[n]).Is(t, 409, "CHALLENGE_NOT_COMPLETED") })
		step("wrong value", true, func(n int) answer { return w.Wrong(flows[n], "SMS").Is(t, 422, "OTP_INVALID") })
		step("renewal too early", false, func(n int) answer {
			return w.Renew(flows[n], "MAIL").Is(t, 429, "RENEW_TOO_EARLY")
		})
		w.Skip(60 * time.Second)
		step("renewal", true, func(n int) answer { return w.Renew(flows[n], "MAIL").Is(t, 200, "") })
		step("wrong value of a renewed method", true, func(n int) answer {
			return w.Wrong(flows[n], "MAIL").Is(t, 422, "OTP_INVALID")
		})
	})
}
