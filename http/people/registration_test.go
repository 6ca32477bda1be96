package people_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/contract"
	"castellan/http/apitest"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/session"
)

// done is the outcome of a sign-up.
type done struct {
	ExecResult struct {
		Success bool
		Code    string
		Data    struct{ UserID, SessionKey string }
	}
}

func registrationOutcome(t *testing.T, a answer) done {
	t.Helper()
	var d done
	storetest.Must(t, json.Unmarshal([]byte(a.is(t, 200, "").body), &d))
	return d
}

// A sign-up from end to end: the account, its password, its contracts and its first session
// exist when the challenge is complete, and not before.
func TestSignUp(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		body := form(7, 7)
		maps.Copy(body, map[string]any{"countryCode": "0090", "phoneNumber": "0532 000 00 07",
			"email": "USER00007@example.invalid"})
		f := w.flow(w.register(body, "Accept-Language", "tr"))
		if f.methods["SMS"].Hint != "+90********07" || f.methods["MAIL"].Hint != "u***@example.invalid" ||
			len(f.methods) != 2 {
			t.Errorf("methods %+v", f.methods)
		}
		w.complete(f, "MAIL", w.code(f, "MAIL")).is(t, 200, "")
		if _, err := w.users.ByPhone(t.Context(), "+905320000007", ""); err == nil {
			t.Fatal("the account exists before the phone is proven")
		}
		final := w.complete(f, "SMS", w.code(f, "SMS"))
		d := registrationOutcome(t, final)
		u, err := w.users.ByPhone(t.Context(), "+905320000007", "")
		storetest.Must(t, err)
		if !d.ExecResult.Success || d.ExecResult.Data.UserID != u.ID || d.ExecResult.Data.SessionKey == "" {
			t.Errorf("the outcome %s", final.body)
		}
		if u.Email != mail(7) || !u.EmailVerified || u.Status != user.Active || u.Name != "Ece" || u.Surname != "Kaya" ||
			u.CountryCode != "90" || u.Language != "tr" || u.Type != user.Individual || len(u.Roles) != 0 {
			t.Errorf("the account %+v", u)
		}
		stored, err := w.users.Secret(t.Context(), u.ID)
		storetest.Must(t, err)
		if right, _, err := w.hasher.Verify(t.Context(), secret, stored.Hash); err != nil || !right {
			t.Errorf("the password is %v, %v", right, err)
		}
		accepted, err := w.contracts.Accepted(t.Context(), u.ID)
		storetest.Must(t, err)
		if len(accepted) != 2 || accepted[0].ContractID != 1 || accepted[1].ContractID != 2 || accepted[0].At.IsZero() {
			t.Errorf("accepted %+v", accepted)
		}
		xauth := final.header.Get("x-auth")
		claims, err := w.issuer.Verify("x-auth", xauth)
		if err != nil || claims.Subject != u.ID || claims.SessionID != d.ExecResult.Data.SessionKey {
			t.Errorf("the token %+v, %v", claims, err)
		}
		if live, err := session.NewSessions(w.db).List(t.Context(), u.ID, w.now(), 10); err != nil || len(live) != 1 {
			t.Errorf("%d sessions, %v", len(live), err)
		}
		if got := w.result(f).is(t, 200, "").header.Get("x-auth"); got != xauth {
			t.Error("the result has another token")
		}
		if _, err := kit.NewAudit(w.db).Verify(t.Context(), []byte("audit key of the test")); err != nil {
			t.Error(err)
		}
		// The details are taken from now on.
		again := w.flow(w.register(form(7, 7)))
		if w.code(again, "SMS") != "" || w.code(again, "MAIL") != "" {
			t.Error("a code was sent for details that have an account")
		}
	})
}

func TestRegisterRefuses(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		_, err := w.contracts.Add(t.Context(), contract.Contract{Code: "OLD", Name: "Old"})
		storetest.Must(t, err)
		for change, want := range map[string]string{
			`{"countryCode":"TR"}`:                          "INVALID_FIELD countryCode",
			`{"phoneNumber":"00000000012"}`:                 "INVALID_FIELD phoneNumber",
			`{"email":"x","name":"\u0007"}`:                 "INVALID_FIELD email name",
			`{"password":"short","passwordVerify":"short"}`: "INVALID_FIELD password",
			`{"passwordVerify":"x"}`:                        "INVALID_FIELD passwordVerify",
			`{"password":"user00001@example.invalid","passwordVerify":"user00001@example.invalid"}`: "INVALID_FIELD password",
			`{"contracts":[1]}`:      "INVALID_FIELD contracts",
			`{"contracts":null}`:     "INVALID_FIELD contracts",
			`{"contracts":[1,2,3]}`:  "INVALID_FIELD contracts", // it is not active
			`{"contracts":[1,2,99]}`: "INVALID_FIELD contracts",
			`{"language":"de"}`:      "INVALID_FIELD language",
		} {
			body := form(1, 1)
			storetest.Must(t, json.Unmarshal([]byte(change), &body))
			if a := w.register(body); a.status != 400 || apitest.Refusal(a.body) != want {
				t.Errorf("%s: %d %s, want %s", change, a.status, a.body, want)
			}
		}
		listed := w.call("GET", "/auth/register/contracts", nil).is(t, 200, "").body
		if want := `{"data":[{"id":1,"code":"TERMS_OF_USE","name":"Terms of use","version":null,"details":[]},` +
			`{"id":2,"code":"PRIVACY","name":"Privacy notice","version":null,"details":[]}]}`; listed != want {
			t.Errorf("contracts %s", listed)
		}
		// A sign-up accepts the version that is active, and no other.
		desk := contract.Service{Store: w.contracts, Changes: admin.Changes{Commit: w.db, Now: w.now,
			Lock: w.contracts.Lock}}
		next, err := desk.AddVersion(t.Context(), audit.By{}, 1, "2")
		storetest.Must(t, err)
		if w.call("GET", "/auth/register/contracts", nil).is(t, 200, "").body != listed {
			t.Error("a draft is listed")
		}
		_, _, err = desk.Publish(t.Context(), audit.By{}, next.ID)
		storetest.Must(t, err)
		_, _, err = desk.Deactivate(t.Context(), audit.By{}, 2)
		storetest.Must(t, err)
		if a := w.register(form(2, 2)); apitest.Refusal(a.body) != "INVALID_FIELD contracts" { // the replaced version
			t.Errorf("%d %s", a.status, a.body)
		}
		listed = w.call("GET", "/auth/register/contracts?_requesterLanguage=tr", nil).is(t, 200, "").body
		if want := fmt.Sprintf(`{"data":[{"id":%d,"code":"TERMS_OF_USE","name":"Kullanım koşulları","version":"2",`+
			`"details":[]}]}`, next.ID); listed != want {
			t.Errorf("contracts %s", listed)
		}
		current := form(2, 2)
		current["contracts"] = []int64{next.ID}
		w.register(current).is(t, 200, "")
		w.enabled = false
		w.start()
		unknown := w.call("POST", "/auth/registered", form(1, 1)).is(t, 404, "NOT_FOUND").body
		for name, body := range map[string]any{"complete": form(1, 1), "none": nil, "empty": map[string]any{},
			"incomplete": map[string]any{"email": "x"}, "no object": []int{1}, "too large": strings.Repeat("x", 1<<20)} {
			a := w.call("POST", "/auth/register", body).is(t, 404, "NOT_FOUND")
			if request.ReplaceAllString(a.body, "") != request.ReplaceAllString(unknown, "") {
				t.Errorf("%s body: %s, an unknown route: %s", name, a.body, unknown)
			}
		}
		w.call("GET", "/auth/register/contracts", nil).is(t, 404, "NOT_FOUND")
	})
}

// Starts are bounded for a phone number, a mail address and a network, whether they are taken
// or not, and what is refused counts for none of them.
func TestRegisterIsBounded(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		for _, n := range []int{1, 2} {
			for i := range 5 {
				w.register(form(n, 100*n+i)).is(t, 200, "")
			}
			if a := w.register(form(n, 900)).is(t, 429, "RATE_LIMITED"); a.header.Get("Retry-After") == "" ||
				!strings.Contains(a.body, "later (limits.reset_per_phone)") {
				t.Errorf("Retry-After %q: %s", a.header.Get("Retry-After"), a.body)
			}
		}
		for i := range 5 {
			w.register(form(300+i, 3)).is(t, 200, "")
		}
		if a := w.register(form(399, 3)).is(t, 429, "RATE_LIMITED"); !strings.Contains(a.body, "(limits.reset_per_phone)") {
			t.Errorf("by the mail address: %s", a.body)
		}
		for i := range 15 { // of the network 15 are left
			w.register(form(400+i, 400+i)).is(t, 200, "")
		}
		if a := w.register(form(500, 500)).is(t, 429, "RATE_LIMITED"); !strings.Contains(a.body, "(limits.reset_per_ip)") {
			t.Errorf("by the network: %s", a.body)
		}
		w.register(form(500, 500), "X-Forwarded-For", "203.0.113.9").is(t, 200, "")
		w.skip(10*time.Minute + time.Second)
		w.register(form(1, 1)).is(t, 200, "")
	})
}

// Sign-ups for one phone number that end at the same time make one account.
func TestOneAccountUnderRace(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		flows := make([]flow, 5) // more would make room for each other
		for i := range flows {
			flows[i] = w.flow(w.register(form(1, 1+i%2)))
			w.complete(flows[i], "MAIL", w.code(flows[i], "MAIL")).is(t, 200, "")
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		ends := map[string]int{}
		for _, f := range flows {
			all.Go(func() {
				a := w.complete(f, "SMS", w.code(f, "SMS"))
				var d done
				json.Unmarshal([]byte(a.body), &d)
				mu.Lock()
				defer mu.Unlock()
				ends[fmt.Sprintf("%d %v %s", a.status, d.ExecResult.Success, d.ExecResult.Code)]++
			})
		}
		all.Wait()
		if ends["200 true "] != 1 || ends["200 false RECORD_ALREADY_EXIST"] != 4 {
			t.Errorf("outcomes %v", ends)
		}
		if users, err := w.users.List(t.Context(), "", 10); err != nil || len(users) != 1 {
			t.Errorf("%d accounts, %v", len(users), err)
		}
	})
}

// A code goes out only to what has no account, at the start and at a renewal. Its proof is
// never enough to get one.
func TestHalfTaken(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		w.add(2, func(u *user.User) { u.Status = user.Closed })
		w.add(3, func(u *user.User) { u.Email = "" })
		for _, c := range []struct {
			phone, mail int
			sms, letter bool
		}{{1, 50, false, true}, {51, 1, true, false}, {2, 52, false, true}, {3, 53, false, true}, {54, 55, true, true},
			{1, 2, false, false}} {
			f := w.flow(w.register(form(c.phone, c.mail)))
			for range 2 {
				if (w.code(f, "SMS") != "") != c.sms || (w.code(f, "MAIL") != "") != c.letter {
					t.Errorf("%+v: codes %q and %q", c, w.code(f, "SMS"), w.code(f, "MAIL"))
				}
				w.skip(61 * time.Second)
				w.mu.Lock()
				w.codes = map[string]string{}
				w.mu.Unlock()
				w.renew(f, "SMS").is(t, 200, "")
				w.renew(f, "MAIL").is(t, 200, "")
			}
			for name, sent := range map[string]bool{"SMS": c.sms, "MAIL": c.letter} {
				if sent {
					w.complete(f, name, w.code(f, name)).is(t, 200, "")
				} else {
					w.wrong(f, name).is(t, 422, "OTP_INVALID")
				}
			}
			if status := w.result(f).status; (status == 200) != (c.sms && c.letter) {
				t.Errorf("%+v: the result is answered by %d", c, status)
			}
		}
		if users, err := w.users.List(t.Context(), "", 10); err != nil || len(users) != 4 {
			t.Errorf("%d accounts, %v", len(users), err)
		}
	})
}

// The owner of a phone number or a mail address is notified at most once an hour.
func TestOwnerIsNotified(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		owner := w.add(1, nil)
		told := func() (n int) {
			all, err := delivery.NewOutbox(w.db).Recent(t.Context(), nil, 1000)
			storetest.Must(t, err)
			for _, m := range all {
				if m.ChallengeID == "" && m.State == outbox.Queued {
					if m.UserID != owner.ID || m.Channel != "MAIL" {
						t.Errorf("told %+v", m)
					}
					n++
				}
			}
			return n
		}
		w.register(form(9, 9)).is(t, 200, "")
		if n := told(); n != 0 {
			t.Errorf("%d notices of free details", n)
		}
		for i := range 3 {
			w.register(form(1, 1)).is(t, 200, "")
			w.register(form(1, 20+i)).is(t, 200, "")
			w.register(form(20+i, 1)).is(t, 200, "")
		}
		if n := told(); n != 1 {
			t.Errorf("%d notices in an hour, want 1", n)
		}
		w.skip(time.Hour)
		w.register(form(30, 1)).is(t, 200, "")
		if n := told(); n != 2 {
			t.Errorf("%d notices an hour later, want 2", n)
		}
	})
}

// Neither the password nor a code is in any row in the clear.
func TestNoSecretInRows(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		var f flow
		statements := w.trace(func() {
			f = w.flow(w.register(form(1, 1)))
			w.complete(f, "MAIL", w.code(f, "MAIL")).is(t, 200, "")
			registrationOutcome(t, w.complete(f, "SMS", w.code(f, "SMS")))
		})
		started := strings.Join(statements, "\n")
		for _, s := range []string{secret, w.code(f, "SMS"), w.code(f, "MAIL")} {
			if strings.Contains(started, s) {
				t.Errorf("%q is in a statement", s)
			}
		}
		c, err := factor.NewChallenges(w.db).Load(t.Context(), f.ChallengeID)
		storetest.Must(t, err)
		if c.Kind != challenge.Applicant || c.UserID != "" || !strings.HasPrefix(c.Subject, challenge.DecoyMark) {
			t.Errorf("the challenge %+v", c)
		}
	})
}

// The caps of a destination do not show whether the other one has an account: a person with a
// phone of their own would count the SMS.
func TestCapsDoNotShowTakenDetails(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		w.add(1, nil)
		var arrived [2]string
		for range 40 {
			for i, f := range []flow{w.flow(w.register(form(51, 1))), w.flow(w.register(form(52, 2)))} {
				arrived[i] += fmt.Sprint(w.code(f, "SMS") != "", " ")
			}
			w.skip(20 * time.Minute)
		}
		if arrived[0] != arrived[1] || !strings.Contains(arrived[0], "false") {
			t.Errorf("with a taken address %s\nwith a free one %s", arrived[0], arrived[1])
		}
	})
}

// Of what a stranger causes, half of the caps goes out to a destination, over all sign-ups for
// a phone number, and the rest looks alike.
func TestCapsOfSignUps(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		sent := map[string]int{}
		for range 15 {
			f := w.flow(w.register(form(1, 1)))
			for _, name := range []string{"SMS", "MAIL"} {
				if w.code(f, name) != "" {
					sent[name]++
				}
			}
		}
		if sent["SMS"] != 10 || sent["MAIL"] != 10 { // of 20 an hour
			t.Errorf("sent %v", sent)
		}
		w.skip(time.Hour)
		f := w.flow(w.register(form(1, 1)))
		if w.code(f, "SMS") == "" || w.code(f, "MAIL") == "" {
			t.Error("nothing is sent an hour later")
		}
	})
}
