package people_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/client"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/domain/session/session"
	"castellan/http/apitest/flowtest"
	httpregistration "castellan/http/people/registration"
	"castellan/http/rest"
	"castellan/persistence/office"
	sessionstore "castellan/persistence/session"
)

const secret = "kedi7şeker"

type (
	answer = flowtest.Answer
	flow   = flowtest.Flow
)

// world is the section behind the engine of challenges.
type world struct {
	*flowtest.Engine
	contracts office.Contracts
	signups   *registration.SignUps
	enabled   bool
}

func registrationBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	flowtest.Both(t, func(t *testing.T, e *flowtest.Engine) {
		w := &world{Engine: e, contracts: office.NewContracts(e.DB), enabled: true}
		storetest.Must(t, w.DB.InTx(t.Context(), func(ctx context.Context) error { return contract.Seed(ctx, w.contracts) }))
		e.Section = w.section
		e.Start()
		test(t, w)
	})
}

func (w *world) section() (rest.Group, flowtest.Public) {
	logins := &session.Service{Users: w.Users, Sessions: sessionstore.NewSessions(w.DB), Commit: w.DB, Tokens: w.Issuer,
		Notices: w.Starter, TokenTTL: 30 * time.Minute, Now: w.Now}
	w.signups = &registration.SignUps{Users: w.Users, Contracts: w.contracts, Engine: w.Starter, First: logins.First,
		Hasher: w.Hasher, Policy: password.DefaultPolicy(), Commit: w.Commit,
		Starts: &registration.Bounds{Networks: w.Bound(30), Phones: w.Bound(5), Mails: w.Bound(5)},
		Place:  func(client.Origin) string { return "" }, Now: w.Now}
	w.Actions.Register(w.signups.Action())
	group := httpregistration.Group{Service: w.signups, Enabled: w.enabled, Contracts: &contract.Service{
		Store: w.contracts, HTML: richtext.New(""), Changes: admin.Changes{Commit: w.DB, Now: w.Now, Lock: w.contracts.Lock}}}
	return group, group.Public()
}

// add makes an account, changed as asked.
func (w *world) add(n int, change func(*user.Add)) user.User {
	w.T.Helper()
	return w.Add(n, mail(n), change)
}

// mail is as long as the address that is sealed in the place of an owner's.
func mail(n int) string { return fmt.Sprintf("user%05d@example.invalid", n) }

// form is a sign-up with the phone number p and the mail address m.
func form(p, m int) map[string]any {
	return map[string]any{"countryCode": "90", "phoneNumber": fmt.Sprintf("532%07d", p), "email": mail(m),
		"name": "Ece", "surname": "Kaya", "password": secret, "passwordVerify": secret, "contracts": []int{1, 2}}
}

func (w *world) register(body any, headers ...string) answer {
	return w.Post("/auth/register", body, headers...)
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
			w.add(11, func(a *user.Add) { a.Status = user.Closed })
			return 11, 11
		},
		"of an account without mail": func(w *world) (int, int) {
			w.add(11, func(a *user.Add) { a.Email = "" })
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
	last := func(i int) flow { return flows[i][len(flows[i])-1] }
	start := func(what string) {
		t.Helper()
		w.Same(what, func(i int) answer {
			a := w.register(forms[i], "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", 10+i))
			if a.Status == 200 {
				flows[i] = append(flows[i], w.Flow(a))
			}
			if n := len(flows[i]); n > 5 { // the owner of the one that made room has seen by then that it did
				w.Result(flows[i][n-6]).Is(t, 409, "CHALLENGE_CLOSED")
			}
			return a
		})
	}
	start("the first start")
	if n := len(w.Trace(func() { w.register(form(31, 31)) })); n < 10 {
		t.Errorf("%d statements were traced", n)
	}
	start("a further start")
	w.Same("result before the end", func(i int) answer { return w.Result(last(i)).Is(t, 409, "CHALLENGE_NOT_COMPLETED") })
	w.Same("renewal too early", func(i int) answer { return w.Renew(last(i), "SMS").Is(t, 429, "RENEW_TOO_EARLY") })
	for n := range 5 {
		w.Same(fmt.Sprint("wrong value ", n), func(i int) answer { return w.Wrong(last(i), "SMS").Is(t, 422, "OTP_INVALID") })
	}
	w.Same("a locked method", func(i int) answer { return w.Wrong(last(i), "SMS").Is(t, 423, "METHOD_LOCKED") })
	w.Skip(61 * time.Second)
	w.Same("renewal", func(i int) answer { return w.Renew(last(i), "SMS").Is(t, 200, "") })
	w.Same("renewal of the mail", func(i int) answer { return w.Renew(last(i), "MAIL").Is(t, 200, "") })
	w.Same("a wrong value of a renewed method", func(i int) answer {
		return w.Wrong(last(i), "SMS").Is(t, 422, "OTP_INVALID")
	})
	w.Start() // another process: everything is read from rows
	w.Same("a wrong value after a restart", func(i int) answer {
		return w.Wrong(last(i), "MAIL").Is(t, 422, "OTP_INVALID")
	})
	start("start after wrong values")
	start("the fourth start")
	start("the fifth start")
	w.Same("the sixth start", func(i int) answer {
		return w.register(forms[i], "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", 10+i)).Is(t, 429, "RATE_LIMITED")
	})
	w.signups.Starts = nil
	for range 12 { // beyond the open challenges and beyond the caps of messages
		start("start without bounds")
	}
	w.Same("renewal beyond the caps", func(i int) answer { return w.Renew(last(i), "MAIL") })
	w.Skip(61 * time.Second)
	w.Same("renewal beyond the caps, in time", func(i int) answer { return w.Renew(last(i), "MAIL").Is(t, 200, "") })
	w.Skip(9 * time.Minute)
	w.Same("expiry", func(i int) answer { return w.Wrong(last(i), "MAIL").Is(t, 410, "CHALLENGE_EXPIRED") })
	w.Same("result after expiry", func(i int) answer { return w.Result(last(i)).Is(t, 410, "CHALLENGE_EXPIRED") })
}
