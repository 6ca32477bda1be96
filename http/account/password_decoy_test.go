package account_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/storetest"
	"castellan/persistence/delivery"
)

// The two sides of the comparison.
const (
	known   = 11
	unknown = 22
)

var (
	anID    = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)
	aHint   = regexp.MustCompile(`"hint":"[^"]*"`)
	instant = regexp.MustCompile(`1[0-9]{12}`)
	inChain = regexp.MustCompile(`(INSERT INTO "?audit"? .* VALUES \('[^']*',) [0-9]+,`)
)

// seen is everything that an outsider, or an observer of the database's load, sees of a request.
func seen(a answer, statements []string) string {
	body := anID.ReplaceAllString(a.body, "ID")
	body = aHint.ReplaceAllStringFunc(body, func(h string) string { return fmt.Sprintf("hint of %d", len(h)) })
	body = instant.ReplaceAllString(body, "INSTANT")
	body = regexp.MustCompile(`"requestId":"[^"]*"`).ReplaceAllString(body, "requestId")
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", a.status, body)
	names := make([]string, 0, len(a.header))
	for name, values := range a.header {
		names = append(names, fmt.Sprintf("%s %d", http.CanonicalHeaderKey(name), len(values[0])))
	}
	slices.Sort(names)
	fmt.Fprintln(&b, names)
	for _, s := range statements {
		s = inChain.ReplaceAllString(s, "$1 0,") // counts the rows of all accounts
		fmt.Fprintf(&b, "%4d bytes: %s\n", len(s), shape(s))
	}
	return b.String()
}

// shape is a statement without its values.
func shape(s string) string {
	s = anID.ReplaceAllString(s, "ID")
	s = regexp.MustCompile(`'[^']*'`).ReplaceAllString(s, "'…'")
	s = regexp.MustCompile(`, 0\) = [01]$`).ReplaceAllString(s, ", 0) = N") // versions with and without a user
	s = strings.ReplaceAll(s, "FALSE, 2,", "FALSE, 0,")                     // a discarded message and a queued one
	s = strings.ReplaceAll(s, "TRUE, 2,", "TRUE, 0,")                       // a discarded notice and a queued one
	return instant.ReplaceAllString(s, "INSTANT")
}

// Known and unknown phones give equal results: status, headers and their lengths, the order of
// keys, refusals, locks, expiry and the socket. The statements of each path are equal to the
// byte (D-PWD-01, SEC-12).
func TestDecoysLookLikeAccounts(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(known, func(a *user.Add) { a.Email = "ayse.yilma@bigbank.com.tr" }) // as long as the value in a decoy

		flows := map[int][]flow{}
		same := func(what string, do func(n int) answer) {
			t.Helper()
			var texts [2]string
			for i, n := range []int{known, unknown} {
				var a answer
				statements := w.trace(func() { a = do(n) })
				texts[i] = seen(a, statements)
			}
			if texts[0] != texts[1] {
				t.Errorf("%s: known\n%s\nunknown\n%s", what, texts[0], texts[1])
			}
			if len(texts[0]) == 0 {
				t.Errorf("%s: nothing was compared", what)
			}
		}
		statements := 0
		start := func(what string) {
			t.Helper()
			same(what, func(n int) answer {
				a := w.post("/auth/password/reset", phone(n), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
				if a.status == 200 {
					flows[n] = append(flows[n], w.flow(a))
				}
				statements = len(w.traced)
				return a
			})
		}
		last := func(n int) flow { return flows[n][len(flows[n])-1] }
		expect := func(a answer, status int, code string) answer { t.Helper(); return a.is(t, status, code) }

		start("the first start")
		if statements < 10 {
			t.Errorf("%d statements were traced", statements)
		}
		for i, methods := range [][2]string{{"SMS", "MAIL"}, {"MAIL", "SMS"}} {
			start("a further start")
			same("result before the end", func(n int) answer {
				return expect(w.result(last(n)), 409, "CHALLENGE_NOT_COMPLETED")
			})
			same("renewal too early", func(n int) answer { return expect(w.renew(last(n), methods[0]), 429, "RENEW_TOO_EARLY") })
			for j := range 5 {
				same(fmt.Sprintf("wrong value %d of %s", j+1, methods[0]),
					func(n int) answer { return expect(w.wrong(last(n), methods[0]), 422, "OTP_INVALID") })
			}
			same("a locked method", func(n int) answer { return expect(w.wrong(last(n), methods[0]), 423, "METHOD_LOCKED") })
			if i == 0 {
				w.skip(61 * time.Second)
				same("renewal", func(n int) answer { return expect(w.renew(last(n), methods[0]), 200, "") })
				same("a wrong value of a renewed method", func(n int) answer {
					return expect(w.wrong(last(n), methods[0]), 422, "OTP_INVALID")
				})
				w.start() // another process: everything is read from rows
				same("a wrong value after a restart", func(n int) answer {
					return expect(w.wrong(last(n), methods[1]), 422, "OTP_INVALID")
				})
			}
			same("subscription", func(n int) answer {
				refused, news, err := w.client.Subscribe(t.Context(), last(n).ChallengeID, 6, 0)
				return answer{status: refused, body: fmt.Sprintf("%s %d %v %v", news.Action, len(news.Events), news.Gone, err)}
			})
			for j := range 5 {
				same(fmt.Sprintf("further wrong value %d", j), func(n int) answer { return w.wrong(last(n), methods[1]) })
			}
			same("the end after too many", func(n int) answer {
				return expect(w.wrong(last(n), methods[1]), 409, "CHALLENGE_CLOSED")
			})
			same("renewal after the end", func(n int) answer {
				return expect(w.renew(last(n), methods[1]), 409, "CHALLENGE_CLOSED")
			})
			same("result after the end", func(n int) answer { return expect(w.result(last(n)), 409, "CHALLENGE_CLOSED") })
			same("subscription after the end", func(n int) answer {
				refused, news, err := w.client.Subscribe(t.Context(), last(n).ChallengeID, 1, 0)
				return answer{status: refused, body: fmt.Sprintf("%s %d %v %v", news.Action, len(news.Events), news.Gone, err)}
			})
		}
		start("start after spent values")
		same("no more values are evaluated", func(n int) answer {
			return expect(w.wrong(last(n), "SMS"), 429, "RATE_LIMITED")
		})
		same("nonsense", func(n int) answer {
			f := last(n)
			return expect(w.complete(flow{f.ChallengeID, f.pauth, map[string]method{"SMS": f.methods["MAIL"]}}, "SMS", "000000"),
				400, "INVALID_FIELD")
		})
		start("the fifth start")
		start("the sixth start")
		if got := len(flows[known]); got != 5 {
			t.Errorf("%d starts, want 5", got)
		}
		w.svc.Phones, w.svc.Networks = nil, nil
		pending := []int{0, 3, 4}
		for range 12 { // beyond the open challenges and beyond the caps of messages
			first := pending[0]
			if pending = append(pending, len(flows[known])); len(pending) > 5 {
				pending = pending[1:]
			}
			same("start without guards", func(n int) answer {
				a := w.post("/auth/password/reset", phone(n), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
				flows[n] = append(flows[n], w.flow(a))
				if first != pending[0] {
					w.result(flows[n][first]).is(t, 409, "CHALLENGE_CLOSED") // its owner has seen by then that it made room
				}
				return a
			})
		}
		same("a challenge that had to make room", func(n int) answer {
			return expect(w.wrong(flows[n][5], "SMS"), 409, "CHALLENGE_CLOSED")
		})
		same("renewal beyond the caps", func(n int) answer { return w.renew(last(n), "MAIL") })
		w.skip(61 * time.Second)
		same("renewal beyond the caps, in time", func(n int) answer { return expect(w.renew(last(n), "MAIL"), 200, "") })
		w.skip(9 * time.Minute)
		same("expiry", func(n int) answer { return expect(w.wrong(last(n), "MAIL"), 410, "CHALLENGE_EXPIRED") })
		same("result after expiry", func(n int) answer { return expect(w.result(last(n)), 410, "CHALLENGE_EXPIRED") })

		rows := func(n int) (discarded int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, m := range w.settled {
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
			all, err := delivery.NewOutbox(w.db).Usage(t.Context(), w.now(), fmt.Sprintf("203.0.113.%d/32", n))
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
			f := w.flow(w.post("/auth/password/reset", map[string]string{"countryCode": "905",
				"phoneNumber": fmt.Sprintf("32%07d", n)}))
			if want := fmt.Sprintf("+905*******%02d", n); f.methods["SMS"].Hint != want {
				t.Errorf("hint %s, want %s", f.methods["SMS"].Hint, want)
			}
		}
	})
}

// A geographic filter and a policy of a real account do not show before the token of the reset
// is redeemed (D-PWD-01).
func TestAccountSettingsStayHidden(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.filter = "US"
		u := w.add(known, func(a *user.Add) { a.Email = "ayse.yilma@bigbank.com.tr" })
		w.policies = []mfa.Policy{{ID: 1, ActionCode: mfa.ResetPassword, Name: "own", EntityType: mfa.UserID, EntityID: u.ID,
			Type: mfa.Common, Required: 2, Methods: []mfa.Choice{{Code: mfa.MAIL}, {Code: mfa.SMS}}}}
		w.start()
		from := func(country string, n int) []string {
			return []string{"X-Country", country, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n)}
		}
		var started [2]flow
		for step, do := range []func(i, n int) answer{
			func(i, n int) answer {
				a := w.post("/auth/password/reset", phone(n), from("US", n)...)
				started[i] = w.flow(a)
				return a
			},
			func(i, n int) answer {
				return w.call("GET", "/auth/2fa/challenge/result", nil, append(from("TR", n), "p-auth", started[i].pauth)...)
			},
			func(i, n int) answer {
				f := started[i]
				return w.post("/auth/2fa/challenge/complete", map[string]string{"methodId": f.methods["SMS"].ID, "method": "SMS",
					"value": "nonsense"}, append(from("TR", n), "p-auth", f.pauth)...)
			},
			func(i, n int) answer { // its owner is awake by now
				return w.call("GET", "/auth/2fa/challenge/result", nil, append(from("TR", n), "p-auth", started[i].pauth)...)
			},
		} {
			var answers [2]string
			for i, n := range []int{known, unknown} {
				answers[i] = seen(do(i, n), nil)
			}
			if answers[0] != answers[1] || strings.Contains(answers[0], "GEO_BLOCKED") {
				t.Errorf("step %d: known\n%s\nunknown\n%s", step, answers[0], answers[1])
			}
		}
	})
}
