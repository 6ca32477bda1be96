package people_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
)

var (
	anID    = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`)
	aHint   = regexp.MustCompile(`"hint":"[^"]*"`)
	instant = regexp.MustCompile(`1[0-9]{12}`)
	inChain = regexp.MustCompile(`(INSERT INTO "?audit"? .* VALUES \('[^']*',) [0-9]+,`)
	aText   = regexp.MustCompile(`'[^']*'`)
	request = regexp.MustCompile(`"requestId":"[^"]*"`)
)

// seen is everything that an outsider, or a person who counts what the database does, sees of
// a request.
func seen(a answer, statements []string) string {
	body := anID.ReplaceAllString(a.body, "ID")
	body = aHint.ReplaceAllStringFunc(body, func(h string) string { return fmt.Sprintf("hint of %d", len(h)) })
	body = request.ReplaceAllString(instant.ReplaceAllString(body, "INSTANT"), "requestId")
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

// shape is a statement without its values. A discarded message and a queued one differ in one
// digit.
func shape(s string) string {
	s = aText.ReplaceAllString(anID.ReplaceAllString(s, "ID"), "'…'")
	s = strings.NewReplacer("FALSE, 2,", "FALSE, 0,", "TRUE, 2,", "TRUE, 0,").Replace(s)
	return instant.ReplaceAllString(s, "INSTANT")
}

// Free and taken details give equal results: status, headers and their lengths, the order of
// keys, refusals, locks, renewals and expiry. The statements of each path are equal to the
// byte (D-INT-07).
func TestTakenDetailsDoNotShow(t *testing.T) {
	for name, taken := range map[string]func(w *world) (phone, mail int){
		"phone and mail": func(w *world) (int, int) { w.add(11, nil); return 11, 11 },
		"phone":          func(w *world) (int, int) { w.add(11, nil); return 11, 12 },
		"mail":           func(w *world) (int, int) { w.add(11, nil); return 12, 11 },
		"of two accounts": func(w *world) (int, int) {
			w.add(11, nil)
			w.add(12, nil)
			return 11, 12
		},
		"of a closed account": func(w *world) (int, int) {
			w.add(11, func(u *user.User) { u.Status = user.Closed })
			return 11, 11
		},
		"of an account without mail": func(w *world) (int, int) {
			w.add(11, func(u *user.User) { u.Email = "" })
			return 11, 12
		},
	} {
		t.Run(name, func(t *testing.T) {
			registrationBoth(t, func(t *testing.T, w *world) {
				phone, mail := taken(w)
				compare(t, w, [2]map[string]any{form(phone, mail), form(21, 21)})
			})
		})
	}
}

func compare(t *testing.T, w *world, forms [2]map[string]any) {
	var flows [2][]flow
	same := func(what string, do func(i int) answer) {
		t.Helper()
		var texts [2]string
		for i := range forms {
			var a answer
			statements := w.trace(func() { a = do(i) })
			texts[i] = seen(a, statements)
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: taken\n%s\nfree\n%s", what, texts[0], texts[1])
		}
	}
	last := func(i int) flow { return flows[i][len(flows[i])-1] }
	start := func(what string) {
		t.Helper()
		same(what, func(i int) answer {
			a := w.register(forms[i], "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", 10+i))
			if a.status == 200 {
				flows[i] = append(flows[i], w.flow(a))
			}
			if n := w.tracedSoFar(); n < 10 {
				t.Errorf("%d statements were traced", n)
			}
			if n := len(flows[i]); n > 5 { // the owner of the one that made room has seen by then that it did
				w.result(flows[i][n-6]).is(t, 409, "CHALLENGE_CLOSED")
			}
			return a
		})
	}
	start("the first start")
	start("a further start")
	same("result before the end", func(i int) answer { return w.result(last(i)).is(t, 409, "CHALLENGE_NOT_COMPLETED") })
	same("renewal too early", func(i int) answer { return w.renew(last(i), "SMS").is(t, 429, "RENEW_TOO_EARLY") })
	for n := range 5 {
		same(fmt.Sprint("wrong value ", n), func(i int) answer { return w.wrong(last(i), "SMS").is(t, 422, "OTP_INVALID") })
	}
	same("a locked method", func(i int) answer { return w.wrong(last(i), "SMS").is(t, 423, "METHOD_LOCKED") })
	w.skip(61 * time.Second)
	same("renewal", func(i int) answer { return w.renew(last(i), "SMS").is(t, 200, "") })
	same("renewal of the mail", func(i int) answer { return w.renew(last(i), "MAIL").is(t, 200, "") })
	same("a wrong value of a renewed method", func(i int) answer {
		return w.wrong(last(i), "SMS").is(t, 422, "OTP_INVALID")
	})
	w.start() // another process: everything is read from rows
	same("a wrong value after a restart", func(i int) answer { return w.wrong(last(i), "MAIL").is(t, 422, "OTP_INVALID") })
	start("start after wrong values")
	start("the fourth start")
	start("the fifth start")
	same("the sixth start", func(i int) answer {
		return w.register(forms[i], "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", 10+i)).is(t, 429, "RATE_LIMITED")
	})
	w.signups.Starts = nil
	for range 12 { // beyond the open challenges and beyond the caps of messages
		start("start without bounds")
	}
	same("renewal beyond the caps", func(i int) answer { return w.renew(last(i), "MAIL") })
	w.skip(61 * time.Second)
	same("renewal beyond the caps, in time", func(i int) answer { return w.renew(last(i), "MAIL").is(t, 200, "") })
	w.skip(9 * time.Minute)
	same("expiry", func(i int) answer { return w.wrong(last(i), "MAIL").is(t, 410, "CHALLENGE_EXPIRED") })
	same("result after expiry", func(i int) answer { return w.result(last(i)).is(t, 410, "CHALLENGE_EXPIRED") })
}
