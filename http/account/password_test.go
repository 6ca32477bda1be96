package account_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/outbound/dispatch"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// The forgotten password from end to end (REQ-PWD-01…05, D-AUTH-10, D-AUTH-11).
func TestResetAndUpdate(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		xauth, _ := w.login(u)
		f := w.reset(1)
		if len(f.Methods) != 2 || f.Methods["SMS"].Hint != "+90********01" || f.Methods["MAIL"].Hint != "" {
			t.Fatalf("methods %+v", f.Methods)
		}
		first := w.Answer(f, "MAIL")
		if first.Header.Get("ot-auth") != "" || first.Field("execResult") != nil {
			t.Fatalf("one method is enough: %s", first.Body)
		}
		w.Result(f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
		final := w.Answer(f, "SMS")
		raw := final.Header.Get("ot-auth")
		if want := fmt.Sprintf(`{"action":"RESET_PASSWORD","execResult":{"success":true},"challengeId":%q}`,
			f.ChallengeID); raw == "" || final.Body != want {
			t.Fatalf("the last answer %s with ot-auth %q", final.Body, raw)
		}
		storetest.Equal(t, w.Result(f).Is(t, 200, "").Header.Get("ot-auth"), raw, "the token of the result")
		_, news, err := w.Client.Subscribe(t.Context(), f.ChallengeID, 1, 0)
		storetest.Must(t, err)
		outcome, err := w.Answers.Open(f.ChallengeID, news.Events[len(news.Events)-1].Outcome)
		if storetest.Must(t, err); outcome.Headers["ot-auth"] != raw {
			t.Error("the socket tells another token")
		}

		refuse := func(body map[string]string, status int, code, field string) {
			t.Helper()
			if a := w.Post("/auth/password/update", body, "ot-auth", raw).Is(t, status, code); field != "" &&
				a.Field("field") != field {
				t.Errorf("field %v, want %s", a.Field("field"), field)
			}
		}
		refuse(map[string]string{"password": passwordB, "passwordVerify": passwordC}, 400, "INVALID_FIELD", "passwordVerify")
		for _, weak := range []string{"", "short", "password123", "05320000001", u.Email} {
			refuse(map[string]string{"password": weak, "passwordVerify": weak}, 400, "INVALID_FIELD", "password")
		}
		refuse(map[string]string{"password": passwordA, "passwordVerify": passwordA}, 422, "PASSWORD_REUSED", "")
		if !w.live(xauth) || !w.has(u, passwordA) {
			t.Fatal("a refused update had an effect")
		}

		tried, err := password.NewGuards(account.NewPasswordGuards(w.DB), w.DB, password.DefaultGuardRules(), w.Now).
			Charge(t.Context(), u.ID, "203.0.113.9/32")
		storetest.Must(t, err)
		tried.Wrong()
		storetest.Equal(t, w.update(raw, passwordB).Is(t, 200, "").Body, `{"success":true}`)
		if w.live(xauth) || !w.has(u, passwordB) || w.has(u, passwordA) {
			t.Error("the update did not take effect, or a session lives")
		}
		if acts := persistencetest.Acts(t, w.DB); !slices.Contains(acts, "PASSWORD_SET||"+u.ID+"|"+u.ID+
			"|with ot-auth; all sessions ended") {
			t.Errorf("audited %q", acts)
		}
		w.update(raw, passwordC).Is(t, 401, "TOKEN_REVOKED")
		got, err := w.Users.Get(t.Context(), u.ID)
		if storetest.Must(t, err); got.SV != 2 || got.CV <= u.CV {
			t.Errorf("sv %d, cv %d", got.SV, got.CV)
		}
		w.expectNotice(u, 1)
		// The owner's door to an account that is closed to new networks (D-GEN-14).
		const here = "0.0.0.0/32" // no connection brought the request
		guard, err := account.NewPasswordGuards(w.DB).Guard(t.Context(), u.ID)
		if storetest.Must(t, err); len(guard.Tries) != 0 || len(guard.Good) != 1 || guard.Good[0].Prefix != here {
			t.Errorf("the account knows %+v after wrong tries %+v", guard.Good, guard.Tries)
		}
	})
}

// expectNotice looks for the mails that say that the password was changed.
func (w *world) expectNotice(u user.User, n int) {
	w.T.Helper()
	all := storetest.Value(delivery.NewOutbox(w.DB).Claim(w.T.Context(), w.Now(), time.Minute, 100))(w.T)
	found := 0
	for _, m := range all {
		r := storetest.Value(dispatch.Unseal(w.Ring.Open, m))(w.T)
		if m.ChallengeID == "" && m.Channel == message.MAIL && r.To == u.Email &&
			r.Subject == "Your Castellan password was changed" {
			found++
		}
	}
	if found != n {
		w.T.Errorf("%d notices of %d due messages, want %d", found, len(all), n)
	}
}

// The last two passwords are refused and nothing older, by either door
// (REQ-PWD-08, D-PWD-03).
func TestHistory(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		u := w.add(1, nil)
		w.update(w.otauth(1), passwordB).Is(t, 200, "") // A → B
		xauth, _ := w.login(u)
		w.change(xauth, passwordB, passwordA).Is(t, 422, "PASSWORD_REUSED")
		w.change(xauth, passwordB, passwordB).Is(t, 422, "PASSWORD_REUSED")
		raw := w.otauth(1)
		w.update(raw, passwordA).Is(t, 422, "PASSWORD_REUSED")
		w.update(raw, passwordB).Is(t, 422, "PASSWORD_REUSED")
		w.update(raw, passwordC).Is(t, 200, "") // B → C
		xauth, _ = w.login(u)
		w.change(xauth, passwordC, passwordB).Is(t, 422, "PASSWORD_REUSED")
		w.finish(w.change(xauth, passwordC, passwordA)) // C → A
		if !w.has(u, passwordA) {
			t.Error("the last but two is refused")
		}
		// NFC: the same letters are the same password, however they are typed.
		w.change(xauth, passwordA, strings.ReplaceAll(passwordA, "ş", "s\u0327")).Is(t, 422, "PASSWORD_REUSED")
		long := strings.Repeat("ab c", 20)
		w.finish(w.change(xauth, passwordA, long+"1"+strings.Repeat("z", 19)))
		// they differ in letter 81
		w.finish(w.change(xauth, long+"1"+strings.Repeat("z", 19), long+"2"+strings.Repeat("z", 19)))
	})
}

// A token that is not a valid ot-auth is refused (SEC-11, D-AUTH-10).
func TestOnlyALivingTokenSetsThePassword(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.svc.Phones, w.svc.Networks = nil, nil
		u := w.add(1, nil)
		raw := w.otauth(1)
		xauth, _ := w.login(u)
		f := w.reset(1)
		for name, bad := range map[string]string{"none": "", "truncated": raw[:len(raw)-1], "longer": raw + "A",
			"x-auth": xauth, "p-auth": f.PAuth} {
			storetest.Equal(t, w.update(bad, passwordB).Status, 401, name)
		}
		forged, err := w.Issuer.Sign(token.Claims{Class: token.OTAuth, ID: id.New(w.Now()), IssuedAt: w.Now(),
			ExpiresAt: w.Now().Add(time.Minute)})
		storetest.Must(t, err)
		w.update(forged, passwordB).Is(t, 401, "TOKEN_REVOKED") // signed here, and not of a reset
		w.Post("/auth/password", map[string]string{"oldPassword": passwordA, "password": passwordB,
			"passwordVerify": passwordB}, "x-auth", raw).Is(t, 401, "UNAUTHENTICATED")

		later := w.otauth(1)
		w.update(raw, passwordB).Is(t, 401, "TOKEN_REVOKED")
		w.svc.Admits = func(user.User, challenge.Starter) bool { return false }
		w.update(later, passwordB).Is(t, 403, "GEO_BLOCKED")
		w.Skip(10*time.Minute + time.Second)
		w.update(later, passwordB).Is(t, 401, "TOKEN_EXPIRED")
		if !w.has(u, passwordA) {
			t.Error("a password was set")
		}
	})
}

// An ot-auth is good for one update, however many come at once (SEC-08).
func TestTokenIsUsedOnce(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		raw := w.otauth(1)
		var wg sync.WaitGroup
		var mu sync.Mutex
		status, set := map[int]int{}, ""
		for i := range 200 {
			wg.Go(func() {
				secret := fmt.Sprintf("different password %d", i)
				a := w.update(raw, secret)
				mu.Lock()
				defer mu.Unlock()
				if status[a.Status]++; a.Status == 200 {
					set = secret
				}
			})
		}
		wg.Wait()
		if status[200] != 1 || status[401] != 199 || !w.has(u, set) {
			t.Errorf("%v", status)
		}
		got, err := w.Users.Get(t.Context(), u.ID)
		if storetest.Must(t, err); got.SV != 2 {
			t.Errorf("sessions were ended %d times", got.SV-1)
		}
	})
}

// The change of a logged-in user (REQ-PWD-06, 07, D-PWD-04, D-AUTH-11).
func TestChange(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		mine, _ := w.login(u)
		other, otherID := w.login(u)
		w.Post("/auth/password", map[string]string{"oldPassword": passwordA, "password": passwordB,
			"passwordVerify": passwordC}, "x-auth", mine).Is(t, 400, "INVALID_FIELD")
		w.change(mine, passwordA, "password123").Is(t, 400, "INVALID_FIELD")

		pending := w.Flow(w.change(other, passwordA, passwordC))
		f := w.Flow(w.change(mine, passwordA, passwordB))
		if !w.has(u, passwordA) || w.has(u, passwordB) {
			t.Fatal("the password changed before the second factor")
		}
		final := w.Answer(f, "SMS")
		if want := fmt.Sprintf(`{"action":"UPDATE_PASSWORD","execResult":{"success":true},"challengeId":%q}`,
			f.ChallengeID); final.Body != want {
			t.Errorf("%s", final.Body)
		}
		if !w.has(u, passwordB) || w.has(u, passwordA) {
			t.Error("the password did not change")
		}
		if w.live(other) || !w.live(mine) {
			t.Error("the wrong sessions ended")
		}
		if !w.Revoked.Revoked(otherID, u.ID, 1) {
			t.Error("the node does not know of the end")
		}
		w.Result(f).Is(t, 200, "") // the challenge that made the change is excepted
		w.Answer(f, "SMS")
		w.Complete(pending, "SMS", w.Code(pending, "SMS")).Is(t, 409, "CHALLENGE_CLOSED")
		got, err := w.Users.Get(t.Context(), u.ID)
		if storetest.Must(t, err); got.SV != u.SV || got.CV != u.CV+1 {
			t.Errorf("sv %d → %d, cv %d → %d", u.SV, got.SV, u.CV, got.CV)
		}
		w.expectNotice(u, 1)
		w.Start() // another process knows it, too
		if w.live(other) || !w.live(mine) {
			t.Error("a restart forgot which sessions ended")
		}
	})
}

// History is judged again when the challenge is complete: by then the stored
// hashes must be those it was judged by.
func TestStoredHashesMoveBeforeTheChange(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		xauth, _ := w.login(u)
		f := w.Flow(w.change(xauth, passwordA, passwordB))
		stored := storetest.Value(w.Users.Secret(t.Context(), u.ID))(t)
		again := storetest.Value(w.Hasher.Hash(t.Context(), passwordA))(t)
		storetest.Must(t, w.DB.Commit(t.Context(), user.Rehash{UserID: u.ID, Old: stored.Hash, New: again}))
		a := w.Answer(f, "SMS")
		var final struct {
			ExecResult struct {
				Success bool
				Code    string
			}
		}
		storetest.Must(t, json.Unmarshal([]byte(a.Body), &final))
		if final.ExecResult.Success || final.ExecResult.Code != "INVALID_STATE" || !w.has(u, passwordA) {
			t.Errorf("%s", a.Body)
		}
	})
}

// Five wrong old passwords in 15 minutes, also over a restart (D-PWD-06).
func TestWrongOldPasswords(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		u := w.add(1, nil)
		xauth, _ := w.login(u)
		for range 3 { // right ones count nothing
			w.change(xauth, passwordA, passwordB).Is(t, 200, "")
		}
		for i := range 5 {
			if i == 3 {
				w.Start()
			}
			w.change(xauth, "not it at all", passwordB).Is(t, 422, "PASSWORD_WRONG")
		}
		a := w.change(xauth, passwordA, passwordB).Is(t, 429, "RATE_LIMITED")
		if a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		w.Skip(14 * time.Minute)
		w.change(xauth, passwordA, passwordB).Is(t, 429, "RATE_LIMITED")
		w.Skip(61 * time.Second)
		w.change(xauth, passwordA, passwordB).Is(t, 200, "")
	})
}
