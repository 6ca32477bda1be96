package actors_test

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/internal/pgtest"
	"castellan/persistence/account"
)

// onBoth runs a test on a world over each kind of database.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, open(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openOn(t, pgtest.DSN(t))) })
}

// authenticator is the user's authenticator app.
type authenticator struct {
	w      *world
	data   map[string]any // execResult.data of the setup
	secret []byte
}

// code returns the app's code, some steps from now.
func (a authenticator) code(steps int64) string {
	return totp.CodeAt(a.secret, totp.StepAt(a.w.totps.Now())+steps)
}

func (a authenticator) recoveryCodes() (codes []string) {
	for _, c := range a.data["recoveryCodes"].([]any) {
		codes = append(codes, c.(string))
	}
	return codes
}

// reload reads the current account.
func (w *world) reload() {
	w.t.Helper()
	u := storetest.Value(account.NewUsers(w.db).Get(w.t.Context(), w.user.ID))(w.t)
	w.user = u
}

// setUp sets up an authenticator by SMS.
func (w *world) setUp() authenticator {
	w.t.Helper()
	w.reload()
	done, err := w.right(w.begin(totp.ActionSetup, ""), challenge.SMS)
	if err != nil || done.Result == nil || !done.Result.Success {
		w.t.Fatalf("setup: %+v, %v", done, err)
	}
	w.reload()
	return w.app(done.Result.Data)
}

func (w *world) app(data json.RawMessage) authenticator {
	w.t.Helper()
	a := authenticator{w: w}
	storetest.Must(w.t, json.Unmarshal(data, &a.data))
	var err error
	if a.secret, err = base32.StdEncoding.DecodeString(a.data["base32"].(string)); err != nil || len(a.secret) != 20 {
		w.t.Fatalf("secret %v, %v", a.data["base32"], err)
	}
	return a
}

func names(c challenge.Challenge) (ns []challenge.Name) {
	for _, m := range c.Methods {
		ns = append(ns, m.Name)
	}
	return ns
}

// Section 3.2 from start to end.
func TestAuthenticatorFromSetupToRemoval(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		storetest.Wants(t, w.totps.Removable(ctx, w.user.ID), fault.TOTPNotDefined)
		other := w.begin("LOGIN", "")
		c := w.begin(totp.ActionSetup, "")
		if slices.Contains(names(c), challenge.TOTP) {
			t.Errorf("methods %v without an authenticator", names(c))
		}
		done, err := w.right(c, challenge.SMS)
		if err != nil || !done.Final || done.Result == nil || !done.Result.Success {
			t.Fatalf("%+v, %v", done, err)
		}
		a := w.app(done.Result.Data)
		for _, pair := range [][2]string{{"otpAuthUrl", "otp_auth_url"}, {"qrDataUrl", "qr_data_url"},
			{"recoveryCodes", "recovery_codes"}} {
			one, _ := json.Marshal(a.data[pair[0]])
			two, _ := json.Marshal(a.data[pair[1]])
			if string(one) != string(two) || len(one) < 20 {
				t.Errorf("%s %s, %s %s", pair[0], one, pair[1], two)
			}
		}
		if len(a.data) != 7 || len(a.recoveryCodes()) != 5 || !strings.Contains(a.data["otpAuthUrl"].(string),
			"a@example.com") {
			t.Errorf("data %v", a.data)
		}
		// Challenges with the old credentials are closed; the challenge that made the change is not.
		_, err = w.right(other, challenge.SMS)
		storetest.Wants(t, err, fault.ChallengeClosed)
		for range 2 {
			if again, err := w.engine.Result(ctx, c.ID, 0); err != nil || string(again.Result.Data) != string(done.Result.Data) {
				t.Errorf("the outcome again: %+v, %v", again, err)
			}
			w.start() // and after a restart
		}
		w.reload()
		if !w.user.TOTP || w.user.CV != 2 {
			t.Errorf("account %+v", w.user)
		}
		storetest.Wants(t, w.totps.Definable(ctx, w.user.ID), fault.TOTPAlreadyDefined)

		// It joins challenges, first in the default's order, and expires with them (D-2FA-03).
		login := w.begin("LOGIN", "")
		m := w.method(login, challenge.TOTP)
		if names(login)[0] != challenge.TOTP || m.LifetimeMs != login.ExpiresAt-login.CreatedAt ||
			m.ExpiresAt != login.ExpiresAt || m.RenewMs != 0 || m.Hint != "" {
			t.Errorf("method %+v", m)
		}
		_, err = w.engine.Renew(ctx, login.ID, m.ID, challenge.TOTP, audit.By{})
		storetest.Wants(t, err, fault.RenewNotSupported)
		code := a.code(0)
		first, err := w.answer(login, challenge.TOTP, " "+code[:3]+" "+code[3:]+"\u200e")
		if err != nil || !first.Final || first.Result.Headers["x-auth"] != "t" {
			t.Fatalf("login: %+v, %v", first, err)
		}
		// An exact repeat receives the stored outcome, another value does not.
		again, err := w.answer(login, challenge.TOTP, code)
		if err != nil || again.Result == nil || string(again.Result.Data) != string(first.Result.Data) {
			t.Errorf("exact repeat: %+v, %v", again, err)
		}
		_, err = w.answer(login, challenge.TOTP, a.code(1))
		storetest.Wants(t, err, fault.MethodAlreadyCompleted)
		// The authenticator is removed by its own code, with all recovery codes.
		w.clock.Add(60)
		off := w.begin(totp.ActionDeactivate, "")
		done, err = w.answer(off, challenge.TOTP, a.code(0))
		if err != nil || !done.Result.Success || done.Result.Data != nil {
			t.Fatalf("deactivation: %+v, %v", done, err)
		}
		if again, err := w.answer(off, challenge.TOTP, a.code(0)); err != nil || !again.Result.Success {
			t.Errorf("its exact repeat: %+v, %v", again, err)
		}
		w.reload()
		if w.user.TOTP || w.user.CV != 3 || slices.Contains(names(w.begin("LOGIN", "")), challenge.TOTP) {
			t.Errorf("account %+v", w.user)
		}
		storetest.Equal(t, bytes.Equal(a.secret, w.setUp().secret), false, "the secret came back")
	})
}

// asking counts the queries for the user of a challenge.
type asking struct {
	stepup.Challenges
	n int
}

func (a *asking) User(ctx context.Context, id string) (string, error) {
	a.n++
	return a.Challenges.User(ctx, id)
}

// An answer asks the owner of a challenge for its user only if the caller does not have the user already.
func TestUserIsLookedUpOnce(t *testing.T) {
	w := open(t)
	app := w.setUp()
	owner := &asking{Challenges: w.client}
	w.engine.Answerer.Challenges = owner
	for n, known := range []*string{&w.user.ID, nil} {
		c := w.begin("LOGIN", "")
		w.clock.Add(30)
		done, err := w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: c.ID, UserID: known,
			MethodID: w.method(c, challenge.TOTP).ID, Method: challenge.TOTP, Value: app.code(0)})
		if err != nil || !done.Final || owner.n != n {
			t.Errorf("%+v, %v after %d questions, want %d", done, err, owner.n, n)
		}
	}
}

// Two tabs cannot both set up an authenticator.
func TestTwoSetupsDefineOneAuthenticator(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		one, two := w.begin(totp.ActionSetup, ""), w.begin(totp.ActionSetup, "")
		var wg sync.WaitGroup
		var mu sync.Mutex
		defined, codes := 0, map[fault.Code]int{}
		for _, c := range []challenge.Challenge{one, two} {
			wg.Go(func() {
				done, err := w.right(c, challenge.SMS)
				if err == nil && done.Result == nil { // its action was fenced and the challenge closed
					done, err = w.engine.Result(t.Context(), c.ID, 5*time.Second)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil && done.Result.Success {
					defined++
				} else if err == nil {
					codes[done.Result.Code]++
				} else {
					codes[fault.CodeOf(err)]++
				}
			})
		}
		wg.Wait()
		// Either condition may be the first that the second tab meets.
		if defined != 1 || codes[fault.ChallengeClosed]+codes[fault.TOTPAlreadyDefined] != 1 {
			t.Errorf("%d setups; refusals %v", defined, codes)
		}
	})
}
