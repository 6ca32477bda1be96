package password_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"castellan/domain/user"
)

// Many known phones and many unknown ones, in any order: the bytes of an answer, its
// headers and the statements behind it depend on the request and on the mail
// provider that the hint shows, and on nothing else (SEC-12, D-PWD-01).
func TestAPopulationOfDecoys(t *testing.T) {
	const each, addressed = 50, 10 // letters before the at sign, of users as of decoys
	providers := []string{"gmail.com", "hotmail.com", "outlook.com", "icloud.com", "yahoo.com"}
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		for n := range each {
			w.add(n, func(a *user.Add) {
				a.Email = fmt.Sprintf("%c%0*d@%s", 'a'+n%26, addressed-1, n, providers[n%len(providers)])
			})
		}
		flows := make([]flow, 2*each)
		provider := func(n int) string {
			_, domain, _ := strings.Cut(flows[n].methods["MAIL"].Hint, "@")
			return domain
		}
		type kind struct{ seen, who string }
		step := func(what string, writes bool, do func(n int) answer) {
			t.Helper()
			of := map[string]kind{}
			users, strangers := 0, 0
			for _, n := range rand.Perm(2 * each) {
				var a answer
				statements := w.trace(func() { a = do(n) })
				if writes != (len(statements) > 0) {
					t.Fatalf("%s: %d statements were traced", what, len(statements))
				}
				who := "a known phone"
				if n >= each {
					who = "an unknown phone"
				}
				now, first := kind{seen(a, statements), who}, of[provider(n)]
				if first.seen == "" {
					of[provider(n)] = now
				} else if now.seen != first.seen {
					t.Fatalf("%s: %s\n%s\n%s\n%s", what, first.who, first.seen, now.who, now.seen)
				} else if first.who != who && who == "a known phone" {
					users++
				} else if first.who != who {
					strangers++
				}
			}
			if users+strangers == 0 || len(of) > len(providers) {
				t.Errorf("%s: %d users and %d strangers were compared with the other kind, under %d providers", what, users,
					strangers, len(of))
			}
		}
		step("reset", true, func(n int) answer {
			a := w.post("/auth/password/reset", phone(n), "X-Forwarded-For", fmt.Sprintf("198.51.%d.%d", 100+n/100, 100+n%100))
			flows[n] = w.flow(a)
			return a
		})
		step("result", false, func(n int) answer { return w.result(flows[n]).is(t, 409, "CHALLENGE_NOT_COMPLETED") })
		step("wrong value", true, func(n int) answer { return w.wrong(flows[n], "SMS").is(t, 422, "OTP_INVALID") })
		step("renewal too early", false, func(n int) answer {
			return w.renew(flows[n], "MAIL").is(t, 429, "RENEW_TOO_EARLY")
		})
		w.skip(60 * time.Second)
		step("renewal", true, func(n int) answer { return w.renew(flows[n], "MAIL").is(t, 200, "") })
		step("wrong value of a renewed method", true, func(n int) answer {
			return w.wrong(flows[n], "MAIL").is(t, 422, "OTP_INVALID")
		})
	})
}
