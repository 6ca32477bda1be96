package account_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/outbound/dispatch"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
)

// The starts of the reset are limited per phone, in any spelling and with or without an
// account, and per network (D-GEN-14).
func TestStartsAreBounded(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		for _, n := range []int{1, 2} { // known, unknown
			for i, cc := range []string{"90", "+90", "0090", "090", "90"} {
				if i == 3 {
					w.Start()
				}
				w.Post("/auth/password/reset", map[string]string{"countryCode": cc,
					"phoneNumber": fmt.Sprintf("0 (532) %07d", n)}).Is(t, 200, "")
			}
			a := w.ask(n).Is(t, 429, "RATE_LIMITED")
			if a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, "later (limits.reset_per_phone)") {
				t.Errorf("Retry-After %q: %s", a.Header.Get("Retry-After"), a.Body)
			}
		}
		for n := range 20 { // 10 have started, those refused count for nothing
			w.ask(100+n).Is(t, 200, "")
		}
		if a := w.ask(500).Is(t, 429, "RATE_LIMITED"); !strings.Contains(a.Body,
			"(limits.reset_per_ip)") {
			t.Errorf("by the network: %s", a.Body)
		}
		w.Skip(10*time.Minute + time.Second)
		w.ask(500).Is(t, 200, "")
		w.ask(1).Is(t, 200, "")
		w.svc.Phones, w.svc.Networks = nil, nil
		for range 40 {
			w.ask(7).Is(t, 200, "")
		}
		w.Post("/auth/password/reset", map[string]string{"countryCode": "TR",
			"phoneNumber": "5320000001"}).Is(t, 400, "INVALID_FIELD")
	})
}

// Parallel starts do not get past the bound of the phone.
func TestStartsAreBoundedUnderRace(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		status := map[int]int{}
		for range 25 {
			wg.Go(func() {
				a := w.ask(1)
				mu.Lock()
				defer mu.Unlock()
				status[a.Status]++
			})
		}
		wg.Wait()
		if status[200] != 5 || status[429] != 20 {
			t.Errorf("%v", status)
		}
	})
}

// A stranger who uses up what a reset allows locks the owner out of nothing
// else, and leaves the owner half of the messages (SEC-05, D-EXT-05).
func TestStrangersDoNotLockTheOwnerOut(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		u := w.add(1, nil)
		sent := 0
		for range 15 {
			if f := w.reset(1); w.Code(f, "SMS") != "" {
				sent++
			}
		}
		if sent != 10 { // half of 20 an hour
			t.Errorf("%d messages to the phone went out for strangers, want 10", sent)
		}
		budget := 0
		for range 4 {
			f := w.reset(1)
			for _, name := range []string{"SMS", "SMS", "SMS", "SMS", "SMS", "MAIL", "MAIL", "MAIL", "MAIL", "MAIL"} {
				if w.Wrong(f, name).Field("code") == string(fault.OTPInvalid) {
					budget++
				}
			}
		}
		storetest.Equal(t, budget, 20, "wrong values were evaluated, want 20")
		xauth, _ := w.login(u)
		w.finish(w.change(xauth, passwordA, passwordB))
	})
}

// Which accounts get a decoy (D-PWD-01, D-GEO-02).
func TestDecoys(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		w.add(1, nil)
		w.add(2, func(a *user.Add) { a.Email = "" })
		w.add(3, func(a *user.Add) { a.Status = user.Blocked })
		w.add(4, func(a *user.Add) { a.Demo = true })
		far := w.add(5, nil)
		w.svc.Admits = func(u user.User, _ challenge.Starter) bool { return u.ID != far.ID }
		store := factor.NewChallenges(w.DB)
		for n := 1; n <= 6; n++ {
			f := w.reset(n)
			c := storetest.Value(store.Load(t.Context(), f.ChallengeID))(t)
			if (c.Kind == challenge.Decoy) != (n != 1) || (c.UserID == "") != (n != 1) || len(c.Subject) != id.Len {
				t.Errorf("%d: %+v", n, c)
			}
			if n == 1 {
				continue
			}
			if f.Methods["SMS"].Hint != fmt.Sprintf("+90********%02d", n) || f.Methods["MAIL"].Hint != "" {
				t.Errorf("hints %+v", f.Methods)
			}
			w.reset(n)
		}
		discarded := w.Discarded()
		storetest.Equal(t, len(discarded), 20, "discarded messages")
		// The text sealed in place of a code is of no use either.
		m := discarded[0]
		r, err := dispatch.Unseal(w.Ring.Open, m)
		storetest.Must(t, err)
		_, err = w.Answers.Complete(t.Context(), stepup.Answer{ChallengeID: m.ChallengeID, MethodID: m.MethodID,
			Method: challenge.Name(m.Channel), Value: r.Code})
		storetest.Wants(t, err, fault.OTPInvalid, "the code of a discarded message")
		recent := storetest.Value(delivery.NewOutbox(w.DB).Recent(t.Context(), nil, 100))(t)
		for _, m := range recent {
			if strings.HasPrefix(m.UserID, "?") {
				t.Errorf("a discarded message is shown: %+v", m)
			}
		}
	})
}

// replaceKey has a new hashing key take over from one that became known.
func (w *world) replaceKey() {
	w.T.Helper()
	keyringtest.Replace(w.T, w.Keys)
	w.Skip(keyring.Notice)
}

// A hashing key that became known is replaced in the middle of everything. It grants no new
// tries and loses nothing under way; later values come from the new key alone.
func TestStartsOutliveAReplacedKey(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		for _, n := range []int{1, 2} { // known, unknown
			for range 4 {
				w.ask(n).Is(t, 200, "")
			}
		}
		w.Skip(keyring.HashGrace) // far from these, so that the windows below are their own
		for _, n := range []int{1, 2} {
			for range 4 {
				w.ask(n).Is(t, 200, "")
			}
		}
		w.replaceKey()
		w.Start()
		for _, n := range []int{1, 2} {
			w.ask(n).Is(t, 200, "")
			w.ask(n).Is(t, 429, "RATE_LIMITED")
		}
		w.Skip(keyring.HashGrace) // the old key ends
		if w.Ring.Former("d") != nil {
			t.Fatal("the old key lives on")
		}
		w.ask(2).Is(t, 200, "")
	})
}

// A phone without an account keeps its counted wrong values, as an account does, and gets a
// new subject once they expire.
func TestDecoysOutliveAReplacedKey(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		w.svc.Phones, w.svc.Networks = nil, nil
		w.replaceKey() // a second replacement below finds two keys that are leaving
		before := w.Starter.Conceal("+905320000002")
		spend := func(n int) {
			for range 4 { // 20 wrong values, five for a method
				f := w.reset(n)
				for range 5 {
					w.Wrong(f, "SMS")
				}
			}
		}
		spend(1)
		spend(2)
		w.Skip(11 * time.Minute) // nothing is open
		for range 2 {
			for _, n := range []int{1, 2} {
				w.Wrong(w.reset(n), "SMS").Is(t, 429, "RATE_LIMITED")
			}
			w.replaceKey()
		}
		if w.Starter.Conceal("+905320000002") == before {
			t.Error("new decoys come from the old key")
		}
		subject, former, err := w.Starter.Subject(t.Context(), "+905320000009")
		if err != nil || subject != w.Starter.Conceal("+905320000009") || len(former) < 2 {
			t.Errorf("a phone that was not asked for has subject %q, %d former, %v", subject, len(former), err)
		}
		w.Skip(keyring.HashGrace)
		subject, former, err = w.Starter.Subject(t.Context(), "+905320000002")
		if err != nil || subject != w.Starter.Conceal("+905320000002") || len(former) != 0 {
			t.Errorf("subject %q, %d former, %v", subject, len(former), err)
		}
	})
}

// The caps of a destination count what was sent under both keys, in memory and from
// rows.
func TestCapsOutliveAReplacedKey(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.add(1, nil)
		w.svc.Phones, w.svc.Networks = nil, nil
		sent := func() bool {
			f := w.reset(1)
			return w.Code(f, "SMS") != ""
		}
		n := 0
		for sent() {
			n++
		}
		if n != 10 { // half of 20, for starts that proved nothing
			t.Fatalf("%d were sent", n)
		}
		w.replaceKey()
		for _, restart := range []bool{false, true} {
			if restart {
				w.Start()
				w.svc.Phones, w.svc.Networks = nil, nil
			}
			if sent() {
				t.Errorf("a new key of hashes gave a new budget (restart %v)", restart)
			}
		}
		w.Skip(time.Hour)
		for n = 0; sent(); n++ {
		}
		if n != 5 { // the user's 30 a day: ten starts of two, and five
			t.Errorf("%d were sent an hour later", n)
		}
	})
}

// A one-time token that is under way when the key is replaced works, once.
func TestOneTimeTokenOutlivesAReplacedKey(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		early := w.otauth(1)
		w.replaceKey()
		w.update(early, passwordB).Is(t, 200, "")
		w.update(early, passwordC).Is(t, 401, "TOKEN_REVOKED")
		late := w.otauth(1)
		w.update(late, passwordC).Is(t, 200, "")
		if !w.has(u, passwordC) {
			t.Error("the password is another one")
		}
	})
}
