package account_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest/flowtest"
	"castellan/persistence/delivery"
)

// The two sides of the comparison.
const (
	known   = 11
	unknown = 22
)

// Known and unknown phones give equal results: status, headers and their lengths, the order of
// keys, refusals, locks, expiry and the socket. The statements of each path are equal to the
// byte (D-PWD-01, SEC-12).
func TestDecoysLookLikeAccounts(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(known, func(a *user.Add) { a.Email = "ayse.yilma@bigbank.com.tr" }) // as long as the value in a decoy

		flows := map[int][]flow{}
		same := func(what string, do func(n int) answer) {
			t.Helper()
			w.Same(what, func(side int) answer { return do([]int{known, unknown}[side]) })
		}
		start := func(what string) {
			t.Helper()
			same(what, func(n int) answer {
				a := w.ask(n, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
				if a.Status == 200 {
					flows[n] = append(flows[n], w.Flow(a))
				}
				return a
			})
		}
		last := func(n int) flow { return flows[n][len(flows[n])-1] }

		start("the first start")
		if n := len(w.Trace(func() { w.ask(33) })); n < 10 {
			t.Errorf("%d statements were traced", n)
		}
		for i, methods := range [][2]string{{"SMS", "MAIL"}, {"MAIL", "SMS"}} {
			start("a further start")
			same("result before the end", func(n int) answer {
				return w.Result(last(n)).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
			})
			same("renewal too early", func(n int) answer { return w.Renew(last(n), methods[0]).Is(t, 429, "RENEW_TOO_EARLY") })
			for j := range 5 {
				same(fmt.Sprintf("wrong value %d of %s", j+1, methods[0]),
					func(n int) answer { return w.Wrong(last(n), methods[0]).Is(t, 422, "OTP_INVALID") })
			}
			same("a locked method", func(n int) answer { return w.Wrong(last(n), methods[0]).Is(t, 423, "METHOD_LOCKED") })
			if i == 0 {
				w.Skip(61 * time.Second)
				same("renewal", func(n int) answer { return w.Renew(last(n), methods[0]).Is(t, 200, "") })
				same("a wrong value of a renewed method", func(n int) answer {
					return w.Wrong(last(n), methods[0]).Is(t, 422, "OTP_INVALID")
				})
				w.Start() // another process: everything is read from rows
				same("a wrong value after a restart", func(n int) answer {
					return w.Wrong(last(n), methods[1]).Is(t, 422, "OTP_INVALID")
				})
			}
			same("subscription", func(n int) answer {
				refused, news, err := w.Client.Subscribe(t.Context(), last(n).ChallengeID, 6, 0)
				return answer{Status: refused, Body: fmt.Sprintf("%s %d %v %v", news.Action, len(news.Events), news.Gone, err)}
			})
			for j := range 5 {
				same(fmt.Sprintf("further wrong value %d", j), func(n int) answer { return w.Wrong(last(n), methods[1]) })
			}
			same("the end after too many", func(n int) answer {
				return w.Wrong(last(n), methods[1]).Is(t, 409, "CHALLENGE_CLOSED")
			})
			same("renewal after the end", func(n int) answer {
				return w.Renew(last(n), methods[1]).Is(t, 409, "CHALLENGE_CLOSED")
			})
			same("result after the end", func(n int) answer { return w.Result(last(n)).Is(t, 409, "CHALLENGE_CLOSED") })
			same("subscription after the end", func(n int) answer {
				refused, news, err := w.Client.Subscribe(t.Context(), last(n).ChallengeID, 1, 0)
				return answer{Status: refused, Body: fmt.Sprintf("%s %d %v %v", news.Action, len(news.Events), news.Gone, err)}
			})
		}
		start("start after spent values")
		same("no more values are evaluated", func(n int) answer {
			return w.Wrong(last(n), "SMS").Is(t, 429, "RATE_LIMITED")
		})
		same("nonsense", func(n int) answer {
			f := last(n)
			f.Methods = map[string]flowtest.Method{"SMS": f.Methods["MAIL"]}
			return w.Complete(f, "SMS", "000000").Is(t, 400, "INVALID_FIELD")
		})
		start("the fifth start")
		start("the sixth start")
		storetest.Equal(t, len(flows[known]), 5, "starts, want 5")
		w.svc.Phones, w.svc.Networks = nil, nil
		pending := []int{0, 3, 4}
		for range 12 { // beyond the open challenges and beyond the caps of messages
			first := pending[0]
			if pending = append(pending, len(flows[known])); len(pending) > 5 {
				pending = pending[1:]
			}
			same("start without guards", func(n int) answer {
				a := w.ask(n, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
				flows[n] = append(flows[n], w.Flow(a))
				if first != pending[0] {
					w.Result(flows[n][first]).Is(t, 409, "CHALLENGE_CLOSED") // its owner has seen by then that it made room
				}
				return a
			})
		}
		same("a challenge that had to make room", func(n int) answer {
			return w.Wrong(flows[n][5], "SMS").Is(t, 409, "CHALLENGE_CLOSED")
		})
		same("renewal beyond the caps", func(n int) answer { return w.Renew(last(n), "MAIL") })
		w.Skip(61 * time.Second)
		same("renewal beyond the caps, in time", func(n int) answer { return w.Renew(last(n), "MAIL").Is(t, 200, "") })
		w.Skip(9 * time.Minute)
		same("expiry", func(n int) answer { return w.Wrong(last(n), "MAIL").Is(t, 410, "CHALLENGE_EXPIRED") })
		same("result after expiry", func(n int) answer { return w.Result(last(n)).Is(t, 410, "CHALLENGE_EXPIRED") })

		rows := func(n int) (discarded int) {
			for _, m := range w.Discarded() {
				if slices.ContainsFunc(flows[n], func(f flow) bool { return f.ChallengeID == m.ChallengeID }) {
					discarded++
				}
			}
			return discarded
		}
		if rows(unknown) != 2*len(flows[unknown])+2 {
			t.Errorf("%d discarded messages of %d decoys", rows(unknown), len(flows[unknown]))
		}
		for _, n := range []int{known, unknown} {
			all, err := delivery.NewOutbox(w.DB).Usage(t.Context(), w.Now(), fmt.Sprintf("203.0.113.%d/32", n))
			if storetest.Must(t, err); all != 2*len(flows[n]) {
				t.Errorf("%d messages of %d starts", all, len(flows[n]))
			}
		}
	})
}

// A number may be split in more ways than one; the hint follows the split of
// the request, also when the number belongs to an account.
func TestHintsFollowTheSplit(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(known, nil)
		for _, n := range []int{known, unknown} {
			f := w.Flow(w.Post("/auth/password/reset", map[string]string{"countryCode": "905",
				"phoneNumber": fmt.Sprintf("32%07d", n)}))
			if want := fmt.Sprintf("+905*******%02d", n); f.Methods["SMS"].Hint != want {
				t.Errorf("hint %s, want %s", f.Methods["SMS"].Hint, want)
			}
		}
	})
}

// A geographic filter and a policy of a real account do not show before the token of the reset
// is redeemed (D-PWD-01).
func TestAccountSettingsStayHidden(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.Filter = "US"
		u := w.add(known, func(a *user.Add) { a.Email = "ayse.yilma@bigbank.com.tr" })
		w.Policies = []mfa.Policy{{ID: 1, ActionCode: mfa.ResetPassword, Name: "own", EntityType: mfa.UserID, EntityID: u.ID,
			Type: mfa.Common, Required: 2, Methods: []mfa.Choice{{Code: mfa.MAIL}, {Code: mfa.SMS}}}}
		w.Start()
		from := func(country string, n int) []string {
			return []string{"X-Country", country, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n)}
		}
		var started [2]flow
		for step, do := range []func(i, n int) answer{
			func(i, n int) answer {
				a := w.ask(n, from("US", n)...)
				started[i] = w.Flow(a)
				return a
			},
			func(i, n int) answer {
				return w.Call("GET", "/auth/2fa/challenge/result", nil, append(from("TR", n), "p-auth", started[i].PAuth)...)
			},
			func(i, n int) answer {
				f := started[i]
				return w.Post("/auth/2fa/challenge/complete", map[string]string{"methodId": f.Methods["SMS"].ID, "method": "SMS",
					"value": "nonsense"}, append(from("TR", n), "p-auth", f.PAuth)...)
			},
			func(i, n int) answer { // its owner is awake by now
				return w.Call("GET", "/auth/2fa/challenge/result", nil, append(from("TR", n), "p-auth", started[i].PAuth)...)
			},
		} {
			var answers [2]string
			for i, n := range []int{known, unknown} {
				answers[i] = flowtest.Seen(do(i, n), nil)
			}
			if answers[0] != answers[1] || strings.Contains(answers[0], "GEO_BLOCKED") {
				t.Errorf("step %d: known\n%s\nunknown\n%s", step, answers[0], answers[1])
			}
		}
	})
}

// A policy that requires a third method does not show which ones an account has.
func TestThirdMethodsStayHidden(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		mail := func(a *user.Add) { a.Email = "ayse.yilma@bigbank.com.tr" }
		w.add(known, mail)
		w.add(33, func(a *user.Add) { mail(a); a.Email, a.TOTP = "x"+a.Email[1:], true })
		w.Policies = []mfa.Policy{{ID: 1, ActionCode: mfa.ResetPassword, Name: "three", EntityType: mfa.General,
			Type: mfa.Common, Required: 3, Methods: []mfa.Choice{{Code: mfa.MAIL}, {Code: mfa.SMS}, {Code: mfa.TOTP},
				{Code: mfa.PUSH}}}}
		w.Start()
		for what, phones := range map[string][2]int{"no third method": {known, unknown}, "an authenticator": {33, 44}} {
			w.Same(what, func(side int) answer {
				a := w.ask(phones[side], "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", phones[side]))
				storetest.Equal(t, len(w.Flow(a).Methods), 4, what, "methods")
				return a
			})
		}
	})
}

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
