package actors_test

import (
	"bytes"
	"context"
	"encoding/base32"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/fault"
	"castellan/domain/keyring"
	"castellan/domain/totp"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

// onBoth runs a test on a world over each kind of database.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, open(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, openOn(t, pgtest.DSN(t))) })
}

// authenticator is the app in somebody's hand.
type authenticator struct {
	w      *world
	data   map[string]any // execResult.data of the setup
	secret []byte
}

// code is the app's code, some steps from now.
func (a authenticator) code(steps int64) string {
	return totp.CodeAt(a.secret, totp.StepAt(a.w.totps.Now())+steps)
}

func (a authenticator) recoveryCodes() (codes []string) {
	for _, c := range a.data["recoveryCodes"].([]any) {
		codes = append(codes, c.(string))
	}
	return codes
}

// reload reads the account as it is now.
func (w *world) reload() {
	w.t.Helper()
	u, err := persistence.NewUsers(w.db).Get(w.t.Context(), w.user.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	w.user = u
}

// setUp defines an authenticator by SMS.
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
	if err := json.Unmarshal(data, &a.data); err != nil {
		w.t.Fatal(err)
	}
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

// Section 3.2 from one end to the other.
func TestAuthenticatorLife(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		expect(t, w.totps.Removable(ctx, w.user.ID), fault.TOTPNotDefined)
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
		for _, pair := range [][2]string{{"otpAuthUrl", "otp_auth_url"}, {"qrDataUrl", "qr_data_url"}, {"recoveryCodes", "recovery_codes"}} {
			one, _ := json.Marshal(a.data[pair[0]])
			two, _ := json.Marshal(a.data[pair[1]])
			if string(one) != string(two) || len(one) < 20 {
				t.Errorf("%s %s, %s %s", pair[0], one, pair[1], two)
			}
		}
		if len(a.data) != 7 || len(a.recoveryCodes()) != 5 || !strings.Contains(a.data["otpAuthUrl"].(string), "a@example.com") {
			t.Errorf("data %v", a.data)
		}
		// What was begun with the old credentials is closed; the challenge that
		// made the change is not.
		_, err = w.right(other, challenge.SMS)
		expect(t, err, fault.ChallengeClosed)
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
		expect(t, w.totps.Definable(ctx, w.user.ID), fault.TOTPAlreadyDefined)

		// It joins challenges, first in the default's order, and lives as long as
		// they do (D-2FA-03).
		login := w.begin("LOGIN", "")
		m := w.method(login, challenge.TOTP)
		if names(login)[0] != challenge.TOTP || m.LifetimeMs != login.ExpiresAt-login.CreatedAt || m.ExpiresAt != login.ExpiresAt || m.RenewMs != 0 || m.Hint != "" {
			t.Errorf("method %+v", m)
		}
		_, err = w.engine.Renew(ctx, login.ID, m.ID, challenge.TOTP, stepup.Actor{})
		expect(t, err, fault.RenewNotSupported)
		code := a.code(0)
		first, err := w.answer(login, challenge.TOTP, " "+code[:3]+" "+code[3:]+"\u200e")
		if err != nil || !first.Final || first.Result.Headers["x-auth"] != "t" {
			t.Fatalf("login: %+v, %v", first, err)
		}
		// An exact repeat is told the stored outcome, another value is not.
		again, err := w.answer(login, challenge.TOTP, code)
		if err != nil || again.Result == nil || string(again.Result.Data) != string(first.Result.Data) {
			t.Errorf("exact repeat: %+v, %v", again, err)
		}
		_, err = w.answer(login, challenge.TOTP, a.code(1))
		expect(t, err, fault.MethodAlreadyCompleted)
		// SEC-06: neither the step nor an older one opens another challenge.
		second := w.begin("LOGIN", "")
		for _, v := range []string{code, code + " ", a.code(-1), a.code(2), a.code(-2)} {
			_, err = w.answer(second, challenge.TOTP, v)
			expect(t, err, fault.OTPInvalid)
		}
		_, err = w.answer(second, challenge.TOTP, a.code(1))
		expect(t, err, fault.MethodLocked)
		third := w.begin("LOGIN", "")
		if done, err := w.answer(third, challenge.TOTP, a.code(1)); err != nil || !done.Final {
			t.Errorf("the next step: %+v, %v", done, err)
		}

		// Out by itself, and every code of it with it.
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
		who := audit.By{UserID: w.user.ID}
		_, err = w.totps.Recover(ctx, who, a.recoveryCodes()[0])
		expect(t, err, fault.TOTPNotDefined)

		b := w.setUp()
		if bytes.Equal(a.secret, b.secret) {
			t.Error("the secret came back")
		}
		_, err = w.totps.Recover(ctx, who, a.recoveryCodes()[0])
		expect(t, err, fault.RecoveryCodeInvalid)
		if _, err := w.totps.Recover(ctx, who, b.recoveryCodes()[0]); err != nil {
			t.Errorf("a new code: %v", err)
		}
	})
}

// asking counts the questions for the user of a challenge.
type asking struct {
	stepup.Challenges
	n int
}

func (a *asking) User(ctx context.Context, id string) (string, error) {
	a.n++
	return a.Challenges.User(ctx, id)
}

// An answer asks the owner of a challenge for its user only when its caller does
// not know the user already.
func TestUserIsAskedForOnce(t *testing.T) {
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

// Two tabs cannot define twice.
func TestTwoSetups(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		one, two := w.begin(totp.ActionSetup, ""), w.begin(totp.ActionSetup, "")
		var wg sync.WaitGroup
		var mu sync.Mutex
		defined, codes := 0, map[fault.Code]int{}
		for _, c := range []challenge.Challenge{one, two} {
			wg.Go(func() {
				done, err := w.right(c, challenge.SMS)
				if err == nil && done.Result == nil { // its action was overtaken and the challenge closed
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
		// Which of the two conditions meets the second one first is theirs to race for.
		if defined != 1 || codes[fault.ChallengeClosed]+codes[fault.TOTPAlreadyDefined] != 1 {
			t.Errorf("%d setups; refusals %v", defined, codes)
		}
	})
}

// The conditions are judged again when the action runs (D-TOTP-03).
func TestConditionsAtExecution(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		setup, off := w.begin(totp.ActionSetup, ""), w.begin(totp.ActionDeactivate, "")
		done, err := w.right(off, challenge.SMS)
		if err != nil || done.Result == nil || done.Result.Success || done.Result.Code != fault.TOTPNotDefined {
			t.Errorf("deactivation: %+v, %v", done, err)
		}
		d := totp.Definition{UserID: w.user.ID, ID: "d", Sealed: []byte("s")}
		if err := w.db.Commit(t.Context(), totp.Define{Definition: d, Codes: []keyring.Sum{}}); err != nil {
			t.Fatal(err)
		}
		done, err = w.right(setup, challenge.SMS)
		if err != nil || done.Result == nil || done.Result.Success || done.Result.Code != fault.TOTPAlreadyDefined || done.Result.Data != nil {
			t.Errorf("setup: %+v, %v", done, err)
		}
		if got, err := persistence.NewTOTP(w.db).Get(t.Context(), w.user.ID); err != nil || got.ID != "d" {
			t.Errorf("the definition: %+v, %v", got, err)
		}
	})
}

// SEC-06: one code over two hundred challenges opens one.
func TestOneStepTwoHundredChallenges(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.setUp()
		w.engine.Starter.Config.MaxOpen = 0
		cs := make([]challenge.Challenge, 200)
		for i := range cs {
			cs[i] = w.begin("LOGIN", "")
		}
		code := a.code(0)
		var wg sync.WaitGroup
		var mu sync.Mutex
		codes := map[fault.Code]int{}
		for _, c := range cs {
			wg.Go(func() {
				_, err := w.answer(c, challenge.TOTP, code)
				mu.Lock()
				defer mu.Unlock()
				codes[fault.CodeOf(err)]++
			})
		}
		wg.Wait()
		// Losers whose wrong value could not be counted are told to try again.
		if codes[""] != 1 || codes[""]+codes[fault.OTPInvalid]+codes[fault.RateLimited]+codes[fault.Unavailable] != 200 || codes[fault.OTPInvalid] > 10 {
			t.Errorf("answers %v", codes)
		}
		done := 0
		states, err := persistence.NewChallenges(w.db).States(t.Context(), ids(cs))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range states {
			if s == challenge.Done {
				done++
			}
		}
		d, err := persistence.NewTOTP(w.db).Get(t.Context(), w.user.ID)
		if err != nil || done != 1 || d.LastStep != totp.StepAt(w.totps.Now()) {
			t.Errorf("%d challenges are done, last step %d, %v", done, d.LastStep, err)
		}
		b, err := persistence.NewChallenges(w.db).Budget(t.Context(), w.user.ID, challenge.FlowLogin)
		// What was told is counted; on a slow machine a caller may have gone before it was told.
		if err != nil || len(b.TOTP) < codes[fault.OTPInvalid] || len(b.TOTP) > 10 {
			t.Errorf("%d wrong values are counted and %d were told, %v", len(b.TOTP), codes[fault.OTPInvalid], err)
		}
	})
}

func ids(cs []challenge.Challenge) (out []string) {
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

// Two hundred copies of the right answer to one challenge: one execution, one
// outcome, told to every copy (D-2FA-14).
func TestTwoHundredCopiesOfACode(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.setUp()
		// The default of VERIFY_EMAIL wants the mail; let it be any action with
		// an effect that can be counted.
		w.actions.Register(challenge.Action{Code: "UPDATE_PASSWORD", Exec: w.actions["VERIFY_EMAIL"].Exec})
		c := w.begin("UPDATE_PASSWORD", "go")
		code := a.code(0)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				done, err := w.answer(c, challenge.TOTP, code)
				if err != nil || done.Result == nil || !done.Result.Success {
					t.Errorf("%+v, %v", done, err)
				}
			})
		}
		wg.Wait()
		if w.effects != 1 {
			t.Errorf("%d effects", w.effects)
		}
	})
}

// Wrong codes: five lock the method, ten over challenges and restarts the flow,
// and only that.
func TestWrongCodes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.setUp()
		var c challenge.Challenge
		for range 2 {
			c = w.begin("LOGIN", "")
			for left := 4; left >= 0; left-- {
				_, err := w.answer(c, challenge.TOTP, wrongOf(a.code(0)))
				expect(t, err, fault.OTPInvalid)
				var f *fault.Error
				if !errors.As(err, &f) || f.AttemptsLeft == nil || *f.AttemptsLeft != left {
					t.Errorf("%v, want %d attempts left", err, left)
				}
			}
			_, err := w.answer(c, challenge.TOTP, a.code(0))
			expect(t, err, fault.MethodLocked)
			w.start()
		}
		c = w.begin("LOGIN", "")
		_, err := w.answer(c, challenge.TOTP, a.code(0))
		expect(t, err, fault.RateLimited)
		if done, err := w.right(c, challenge.SMS); err != nil || !done.Final {
			t.Errorf("another method: %+v, %v", done, err)
		}
		// A code that was not evaluated was not used up, and another flow is open.
		if err := w.totps.Verify(t.Context(), audit.By{UserID: w.user.ID}, a.code(0)); err != nil {
			t.Errorf("another flow: %v", err)
		}
	})
}

// D-AUTH-08: a step is used for every purpose.
func TestStepIsUsedForEveryPurpose(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, a := t.Context(), w.setUp()
		who := audit.By{UserID: w.user.ID}
		if err := w.totps.Verify(ctx, who, a.code(0)); err != nil {
			t.Fatal(err)
		}
		c := w.begin("LOGIN", "")
		_, err := w.answer(c, challenge.TOTP, a.code(0))
		expect(t, err, fault.OTPInvalid)
		if _, err := w.answer(c, challenge.TOTP, a.code(1)); err != nil {
			t.Fatal(err)
		}
		for _, steps := range []int64{-1, 0, 1} {
			expect(t, w.totps.Verify(ctx, who, a.code(steps)), fault.OTPInvalid)
		}
		// One race for both: a challenge and the guard, ten at a time.
		w.clock.Add(60)
		w.engine.Starter.Config.MaxOpen = 0
		var wg sync.WaitGroup
		var mu sync.Mutex
		accepted := 0
		for i := range 8 {
			var try func() error
			if i%2 == 0 {
				c := w.begin("LOGIN", "")
				try = func() error { _, err := w.answer(c, challenge.TOTP, a.code(0)); return err }
			} else {
				try = func() error { return w.totps.Verify(ctx, who, a.code(0)) }
			}
			wg.Go(func() {
				if try() == nil {
					mu.Lock()
					accepted++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if accepted != 1 {
			t.Errorf("one step was accepted %d times", accepted)
		}
	})
}

// A verdict never opens a challenge without the use that uses the value up,
// nor with that to another user's.
func TestVerdictNeedsItsUse(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, a := t.Context(), w.setUp()
		c := w.begin("LOGIN", "")
		d, err := persistence.NewTOTP(w.db).Get(ctx, w.user.ID)
		if err != nil {
			t.Fatal(err)
		}
		answer := challenge.Answer{MethodID: w.method(c, challenge.TOTP).ID, Method: challenge.TOTP, Verdict: challenge.Right}
		_, err = w.client.Complete(ctx, c.ID, answer, 0, stepup.Actor{})
		expect(t, err, fault.Internal)
		answer.Use = &challenge.Use{Key: "another", Value: 1 << 40}
		if _, err = w.client.Complete(ctx, c.ID, answer, 0, stepup.Actor{}); !errors.Is(err, stepup.Overtaken()) {
			t.Errorf("a use to another definition: %v", err)
		}
		answer.Use = &challenge.Use{Key: d.ID, Value: 0}
		if _, err = w.client.Complete(ctx, c.ID, answer, 0, stepup.Actor{}); !errors.Is(err, stepup.Overtaken()) {
			t.Errorf("a use to a step that is not newer: %v", err)
		}
		answer.Method, answer.MethodID = challenge.SMS, w.method(c, challenge.SMS).ID
		_, err = w.client.Complete(ctx, c.ID, answer, 0, stepup.Actor{})
		expect(t, err, fault.Internal)
		if done, err := w.answer(c, challenge.TOTP, a.code(0)); err != nil || !done.Final {
			t.Errorf("the honest answer afterwards: %+v, %v", done, err)
		}
	})
}

// A challenge without a user, and one that is not there, are no oracle.
func TestCodesForNobody(t *testing.T) {
	w := open(t)
	if v, use, err := w.totps.Judge(t.Context(), "", "123456"); err != nil || v != challenge.Wrong || use != nil {
		t.Errorf("%v, %v, %v", v, use, err)
	}
	_, err := w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: "01NONE", MethodID: "m", Method: challenge.TOTP, Value: "123456"})
	expect(t, err, fault.ChallengeNotFound)
	c := w.begin("LOGIN", "") // it offers no TOTP
	_, err = w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: c.ID, MethodID: "m", Method: challenge.TOTP, Value: "123456"})
	expect(t, err, fault.MethodNotFound)
	_, err = w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: c.ID, MethodID: c.Methods[0].ID, Method: challenge.TOTP, Value: "123456"})
	expect(t, err, fault.InvalidField)
}

// SEC-45 and D-TOTP-09: nothing in the database says the secret or a recovery
// code, and a sealed secret opens in its own row only.
func TestSecretsAtRest(t *testing.T) {
	dir := t.TempDir()
	w := openOn(t, "sqlite:"+filepath.Join(dir, "test.db"))
	a := w.setUp()
	if err := w.totps.Verify(t.Context(), audit.By{UserID: w.user.ID}, a.code(0)); err != nil {
		t.Fatal(err)
	}
	var dump []byte
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		dump = append(dump, b...)
	}
	if !bytes.Contains(dump, []byte(w.user.ID)) {
		t.Fatal("the dump shows nothing")
	}
	secrets := append(a.recoveryCodes(), a.data["base32"].(string), string(a.secret), a.code(0), strings.ReplaceAll(a.recoveryCodes()[0], "-", ""))
	for i, s := range secrets {
		if bytes.Contains(dump, []byte(s)) {
			t.Errorf("secret %d is in the database", i)
		}
	}
	// The row of another account under this one's name does not open.
	store := persistence.NewTOTP(w.db)
	d, err := store.Get(t.Context(), w.user.ID)
	if err != nil {
		t.Fatal(err)
	}
	d.ID += "x"
	if err := w.db.Commit(t.Context(), totp.Remove{UserID: w.user.ID}); err != nil {
		t.Fatal(err)
	}
	if err := w.db.Commit(t.Context(), totp.Define{Definition: d}); err != nil {
		t.Fatal(err)
	}
	w.clock.Add(60)
	if v, use, err := w.totps.Judge(context.Background(), w.user.ID, a.code(0)); !errors.Is(err, keyring.ErrOpen) || v == challenge.Right || use != nil {
		t.Errorf("%v, %v, %v", v, use, err)
	}
}
