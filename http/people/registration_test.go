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
	"castellan/http/apitest/flowtest"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
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
	storetest.Must(t, json.Unmarshal([]byte(a.Is(t, 200, "").Body), &d))
	return d
}

// A sign-up from end to end: the account, its password, its contracts and its first session
// exist when the challenge is complete, and not before.
func TestSignUp(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		body := form(7, 7)
		maps.Copy(body, map[string]any{"countryCode": "0090", "phoneNumber": "0532 000 00 07",
			"email": "USER00007@example.invalid"})
		f := w.Flow(w.register(body, "Accept-Language", "tr"))
		if f.Methods["SMS"].Hint != "+90********07" || f.Methods["MAIL"].Hint != "u***@example.invalid" ||
			len(f.Methods) != 2 {
			t.Errorf("methods %+v", f.Methods)
		}
		w.Answer(f, "MAIL")
		if _, err := w.Users.ByPhone(t.Context(), "+905320000007", ""); err == nil {
			t.Fatal("the account exists before the phone is proven")
		}
		final := w.Complete(f, "SMS", w.Code(f, "SMS"))
		d := registrationOutcome(t, final)
		u := storetest.Value(w.Users.ByPhone(t.Context(), "+905320000007", ""))(t)
		if !d.ExecResult.Success || d.ExecResult.Data.UserID != u.ID || d.ExecResult.Data.SessionKey == "" {
			t.Errorf("the outcome %s", final.Body)
		}
		if u.Email != mail(7) || !u.EmailVerified || u.Status != user.Active || u.Name != "Ece" || u.Surname != "Kaya" ||
			u.CountryCode != "90" || u.Language != "tr" || u.Type != user.Individual || len(u.Roles) != 0 {
			t.Errorf("the account %+v", u)
		}
		stored := storetest.Value(w.Users.Secret(t.Context(), u.ID))(t)
		if right, _, err := w.Hasher.Verify(t.Context(), secret, stored.Hash); err != nil || !right {
			t.Errorf("the password is %v, %v", right, err)
		}
		accepted := storetest.Value(w.contracts.Accepted(t.Context(), u.ID))(t)
		if len(accepted) != 2 || accepted[0].ContractID != 1 || accepted[1].ContractID != 2 || accepted[0].At.IsZero() {
			t.Errorf("accepted %+v", accepted)
		}
		xauth := final.Header.Get("x-auth")
		claims, err := w.Issuer.Verify("x-auth", xauth)
		if err != nil || claims.Subject != u.ID || claims.SessionID != d.ExecResult.Data.SessionKey {
			t.Errorf("the token %+v, %v", claims, err)
		}
		storetest.Equal(t, len(storetest.Value(session.NewSessions(w.DB).List(t.Context(), u.ID, w.Now(), 10))(t)), 1)
		storetest.Equal(t, w.Result(f).Is(t, 200, "").Header.Get("x-auth"), xauth, "the token of the result")
		storetest.Must(t, storetest.Err(kit.NewAudit(w.DB).Verify(t.Context(), []byte(persistencetest.AuditKey))))
		// The details are taken from now on.
		again := w.Flow(w.register(form(7, 7)))
		if w.Code(again, "SMS") != "" || w.Code(again, "MAIL") != "" {
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
			`{"contracts":[1,2,3]}`:  "INVALID_FIELD contracts", // it is not active
			`{"contracts":[1,2,99]}`: "INVALID_FIELD contracts",
		} {
			body := form(1, 1)
			storetest.Must(t, json.Unmarshal([]byte(change), &body))
			if a := w.register(body); a.Status != 400 || apitest.Refusal(a.Body) != want {
				t.Errorf("%s: %d %s, want %s", change, a.Status, a.Body, want)
			}
		}
		listed := w.Call("GET", "/auth/register/contracts", nil).Is(t, 200, "").Body
		if want := `{"data":[{"id":1,"code":"TERMS_OF_USE","name":"Terms of use","version":null,"details":[]},` +
			`{"id":2,"code":"PRIVACY","name":"Privacy notice","version":null,"details":[]}]}`; listed != want {
			t.Errorf("contracts %s", listed)
		}
		// A sign-up accepts the version that is active, and no other.
		desk := contract.Service{Store: w.contracts, Changes: admin.Changes{Commit: w.DB, Now: w.Now,
			Lock: w.contracts.Lock}}
		next := storetest.Value(desk.AddVersion(t.Context(), audit.By{}, 1, "2"))(t)
		storetest.Equal(t, w.Call("GET", "/auth/register/contracts", nil).Is(t, 200, "").Body, listed)
		_, _, err = desk.Publish(t.Context(), audit.By{}, next.ID)
		storetest.Must(t, err)
		_, _, err = desk.Deactivate(t.Context(), audit.By{}, 2)
		storetest.Must(t, err)
		if a := w.register(form(2, 2)); apitest.Refusal(a.Body) != "INVALID_FIELD contracts" { // the replaced version
			t.Errorf("%d %s", a.Status, a.Body)
		}
		listed = w.Call("GET", "/auth/register/contracts?_requesterLanguage=tr", nil).Is(t, 200, "").Body
		if want := fmt.Sprintf(`{"data":[{"id":%d,"code":"TERMS_OF_USE","name":"Kullanım koşulları","version":"2",`+
			`"details":[]}]}`, next.ID); listed != want {
			t.Errorf("contracts %s", listed)
		}
		current := form(2, 2)
		current["contracts"] = []int64{next.ID}
		w.register(current).Is(t, 200, "")
		w.enabled = false
		w.Start()
		unknown := w.Call("POST", "/auth/registered", form(1, 1)).Is(t, 404, "NOT_FOUND").Body
		for name, body := range map[string]any{"complete": form(1, 1), "none": nil, "empty": map[string]any{},
			"incomplete": map[string]any{"email": "x"}, "no object": []int{1}, "too large": strings.Repeat("x", 1<<20)} {
			a := w.Call("POST", "/auth/register", body).Is(t, 404, "NOT_FOUND")
			if flowtest.WithoutRequestID(a.Body) != flowtest.WithoutRequestID(unknown) {
				t.Errorf("%s body: %s, an unknown route: %s", name, a.Body, unknown)
			}
		}
		w.Call("GET", "/auth/register/contracts", nil).Is(t, 404, "NOT_FOUND")
	})
}

// Starts are bounded for a phone number, a mail address and a network, whether they are taken
// or not, and what is refused counts for none of them.
func TestRegisterIsBounded(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		for _, n := range []int{1, 2} {
			for i := range 5 {
				w.register(form(n, 100*n+i)).Is(t, 200, "")
			}
			if a := w.register(form(n, 900)).Is(t, 429, "RATE_LIMITED"); a.Header.Get("Retry-After") == "" ||
				!strings.Contains(a.Body, "later (limits.reset_per_phone)") {
				t.Errorf("Retry-After %q: %s", a.Header.Get("Retry-After"), a.Body)
			}
		}
		for i := range 5 {
			w.register(form(300+i, 3)).Is(t, 200, "")
		}
		if a := w.register(form(399, 3)).Is(t, 429, "RATE_LIMITED"); !strings.Contains(a.Body, "(limits.reset_per_phone)") {
			t.Errorf("by the mail address: %s", a.Body)
		}
		for i := range 15 { // of the network 15 are left
			w.register(form(400+i, 400+i)).Is(t, 200, "")
		}
		if a := w.register(form(500, 500)).Is(t, 429, "RATE_LIMITED"); !strings.Contains(a.Body, "(limits.reset_per_ip)") {
			t.Errorf("by the network: %s", a.Body)
		}
		w.register(form(500, 500), "X-Forwarded-For", "203.0.113.9").Is(t, 200, "")
		w.Skip(10*time.Minute + time.Second)
		w.register(form(1, 1)).Is(t, 200, "")
	})
}

// Sign-ups for one phone number that end at the same time make one account.
func TestOneAccountUnderRace(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		flows := make([]flow, 5) // more would make room for each other
		for i := range flows {
			flows[i] = w.Flow(w.register(form(1, 1+i%2)))
			w.Answer(flows[i], "MAIL")
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		ends := map[string]int{}
		for _, f := range flows {
			all.Go(func() {
				a := w.Complete(f, "SMS", w.Code(f, "SMS"))
				var d done
				json.Unmarshal([]byte(a.Body), &d)
				mu.Lock()
				defer mu.Unlock()
				ends[fmt.Sprintf("%d %v %s", a.Status, d.ExecResult.Success, d.ExecResult.Code)]++
			})
		}
		all.Wait()
		if ends["200 true "] != 1 || ends["200 false RECORD_ALREADY_EXIST"] != 4 {
			t.Errorf("outcomes %v", ends)
		}
		storetest.Equal(t, len(storetest.Value(w.Users.List(t.Context(), "", 10))(t)), 1)
	})
}

// A code goes out only to what has no account, at the start and at a renewal. Its proof is
// never enough to get one.
func TestHalfTaken(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		w.add(2, func(a *user.Add) { a.Status = user.Closed })
		w.add(3, func(a *user.Add) { a.Email = "" })
		for _, c := range []struct {
			phone, mail int
			sms, letter bool
		}{{1, 50, false, true}, {51, 1, true, false}, {2, 52, false, true}, {3, 53, false, true}, {54, 55, true, true},
			{1, 2, false, false}} {
			f := w.Flow(w.register(form(c.phone, c.mail)))
			for range 2 {
				if (w.Code(f, "SMS") != "") != c.sms || (w.Code(f, "MAIL") != "") != c.letter {
					t.Errorf("%+v: codes %q and %q", c, w.Code(f, "SMS"), w.Code(f, "MAIL"))
				}
				w.Skip(61 * time.Second)
				w.Forget()
				w.Renew(f, "SMS").Is(t, 200, "")
				w.Renew(f, "MAIL").Is(t, 200, "")
			}
			for name, sent := range map[string]bool{"SMS": c.sms, "MAIL": c.letter} {
				if sent {
					w.Answer(f, name)
				} else {
					w.Wrong(f, name).Is(t, 422, "OTP_INVALID")
				}
			}
			if status := w.Result(f).Status; (status == 200) != (c.sms && c.letter) {
				t.Errorf("%+v: the result is answered by %d", c, status)
			}
		}
		storetest.Equal(t, len(storetest.Value(w.Users.List(t.Context(), "", 10))(t)), 4)
	})
}

// The owner of a phone number or a mail address is notified at most once an hour.
func TestOwnerIsNotified(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		w.signups.Starts = nil
		owner := w.add(1, nil)
		told := func() (n int) {
			all := storetest.Value(delivery.NewOutbox(w.DB).Recent(t.Context(), nil, 1000))(t)
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
		w.register(form(9, 9)).Is(t, 200, "")
		storetest.Equal(t, told(), 0, "notices of free details")
		for i := range 3 {
			w.register(form(1, 1)).Is(t, 200, "")
			w.register(form(1, 20+i)).Is(t, 200, "")
			w.register(form(20+i, 1)).Is(t, 200, "")
		}
		storetest.Equal(t, told(), 1, "notices in an hour, want 1")
		w.Skip(time.Hour)
		w.register(form(30, 1)).Is(t, 200, "")
		storetest.Equal(t, told(), 2, "notices an hour later, want 2")
	})
}

// Neither the password nor a code is in any row in the clear.
func TestNoSecretInRows(t *testing.T) {
	registrationBoth(t, func(t *testing.T, w *world) {
		var f flow
		statements := w.Trace(func() {
			f = w.Flow(w.register(form(1, 1)))
			w.Answer(f, "MAIL")
			registrationOutcome(t, w.Complete(f, "SMS", w.Code(f, "SMS")))
		})
		started := strings.Join(statements, "\n")
		for _, s := range []string{secret, w.Code(f, "SMS"), w.Code(f, "MAIL")} {
			storetest.Lacks(t, started, s)
		}
		c := storetest.Value(factor.NewChallenges(w.DB).Load(t.Context(), f.ChallengeID))(t)
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
			for i, f := range []flow{w.Flow(w.register(form(51, 1))), w.Flow(w.register(form(52, 2)))} {
				arrived[i] += fmt.Sprint(w.Code(f, "SMS") != "", " ")
			}
			w.Skip(20 * time.Minute)
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
			f := w.Flow(w.register(form(1, 1)))
			for _, name := range []string{"SMS", "MAIL"} {
				if w.Code(f, name) != "" {
					sent[name]++
				}
			}
		}
		if sent["SMS"] != 10 || sent["MAIL"] != 10 { // of 20 an hour
			t.Errorf("sent %v", sent)
		}
		w.Skip(time.Hour)
		f := w.Flow(w.register(form(1, 1)))
		if w.Code(f, "SMS") == "" || w.Code(f, "MAIL") == "" {
			t.Error("nothing is sent an hour later")
		}
	})
}
