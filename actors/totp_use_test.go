package actors_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/persistence/factor"
	"castellan/persistence/proof"
)

// One code in two hundred challenges completes one (SEC-06).
func TestOneCodeCompletesOneChallenge(t *testing.T) {
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
		// A loser whose wrong value could not be counted receives a retryable error.
		if codes[""] != 1 || codes[""]+codes[fault.OTPInvalid]+codes[fault.RateLimited]+codes[fault.Unavailable] != 200 ||
			codes[fault.OTPInvalid] > 10 {
			t.Errorf("answers %v", codes)
		}
		done := 0
		states := storetest.Value(factor.NewChallenges(w.db).States(t.Context(), ids(cs)))(t)
		for _, s := range states {
			if s == challenge.Done {
				done++
			}
		}
		d, err := proof.NewTOTP(w.db).Get(t.Context(), w.user.ID)
		if err != nil || done != 1 || d.LastStep != totp.StepAt(w.totps.Now()) {
			t.Errorf("%d challenges are done, last step %d, %v", done, d.LastStep, err)
		}
		b, err := factor.NewChallenges(w.db).Budget(t.Context(), w.user.ID, challenge.FlowLogin)
		// Every reported value is counted; on a slow machine a caller may have gone before its answer.
		if err != nil || len(b.TOTP) < codes[fault.OTPInvalid] || len(b.TOTP) > 10 {
			t.Errorf("%d wrong values are counted and %d were reported, %v", len(b.TOTP), codes[fault.OTPInvalid], err)
		}
	})
}

func ids(cs []challenge.Challenge) (out []string) {
	for _, c := range cs {
		out = append(out, c.ID)
	}
	return out
}

// Two hundred copies of the right answer to one challenge cause one execution and one outcome, which every copy
// receives (D-2FA-14).
func TestTwoHundredCopiesOfACodeExecuteOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a := w.setUp()
		// The default of VERIFY_EMAIL needs mail; use any action with a countable effect.
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
		storetest.Equal(t, w.effects, 1, "effects")
	})
}

// D-AUTH-08: a step is consumed for every purpose.
func TestStepIsUsedForEveryPurpose(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, a := t.Context(), w.setUp()
		who := audit.By{UserID: w.user.ID}
		storetest.Must(t, w.totps.Verify(ctx, who, a.code(0)))
		c := w.begin("LOGIN", "")
		_, err := w.answer(c, challenge.TOTP, a.code(0))
		storetest.Wants(t, err, fault.OTPInvalid)
		storetest.Must(t, storetest.Err(w.answer(c, challenge.TOTP, a.code(1))))
		for _, steps := range []int64{-1, 0, 1} {
			storetest.Wants(t, w.totps.Verify(ctx, who, a.code(steps)), fault.OTPInvalid)
		}
		// A challenge and the guard race for one step, ten at a time.
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
		storetest.Equal(t, accepted, 1, "one step was accepted", "times")
	})
}

// A verdict never completes a challenge without the use that consumes the value, nor with a use for another user.
func TestVerdictNeedsItsUse(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, a := t.Context(), w.setUp()
		c := w.begin("LOGIN", "")
		d, err := proof.NewTOTP(w.db).Get(ctx, w.user.ID)
		storetest.Must(t, err)
		answer := challenge.Answer{MethodID: w.method(c, challenge.TOTP).ID, Method: challenge.TOTP, Verdict: challenge.Right}
		_, err = w.client.Complete(ctx, c.ID, answer, 0, audit.By{})
		storetest.Wants(t, err, fault.Internal)
		answer.Use = &challenge.Use{Key: "another", Value: 1 << 40}
		if _, err = w.client.Complete(ctx, c.ID, answer, 0, audit.By{}); !errors.Is(err, stepup.OutdatedInput()) {
			t.Errorf("a use to another definition: %v", err)
		}
		answer.Use = &challenge.Use{Key: d.ID, Value: 0}
		if _, err = w.client.Complete(ctx, c.ID, answer, 0, audit.By{}); !errors.Is(err, stepup.OutdatedInput()) {
			t.Errorf("a use to a step that is not newer: %v", err)
		}
		answer.Method, answer.MethodID = challenge.SMS, w.method(c, challenge.SMS).ID
		// The caller cannot claim that a sent code is right.
		_, err = w.client.Complete(ctx, c.ID, answer, 0, audit.By{})
		storetest.Wants(t, err, fault.OTPInvalid)
		if done, err := w.answer(c, challenge.TOTP, a.code(0)); err != nil || !done.Final {
			t.Errorf("the honest answer afterwards: %+v, %v", done, err)
		}
	})
}

// A challenge without a user and a missing challenge are indistinguishable.
func TestCodesWithoutUserRevealNothing(t *testing.T) {
	w := open(t)
	if v, use, err := w.totps.Judge(t.Context(), "", "123456"); err != nil || v != challenge.Wrong || use != nil {
		t.Errorf("%v, %v, %v", v, use, err)
	}
	_, err := w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: "01NONE", MethodID: "m", Method: challenge.TOTP,
		Value: "123456"})
	storetest.Wants(t, err, fault.ChallengeNotFound)
	c := w.begin("LOGIN", "") // it offers no TOTP
	_, err = w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: c.ID, MethodID: "m", Method: challenge.TOTP,
		Value: "123456"})
	storetest.Wants(t, err, fault.MethodNotFound)
	_, err = w.engine.Complete(t.Context(), stepup.Answer{ChallengeID: c.ID, MethodID: c.Methods[0].ID,
		Method: challenge.TOTP, Value: "123456"})
	storetest.Same(t, err, error(fault.Invalid("method", "does not belong to this methodId")))
}

// SEC-45 and D-TOTP-09: the database never contains the secret or a recovery code in plain text, and a sealed secret
// opens in its own row only.
func TestSecretsAreSealedAtRest(t *testing.T) {
	dir := t.TempDir()
	w := openOn(t, "sqlite:"+filepath.Join(dir, "test.db"))
	a := w.setUp()
	storetest.Must(t, w.totps.Verify(t.Context(), audit.By{UserID: w.user.ID}, a.code(0)))
	var dump []byte
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		b := storetest.Value(os.ReadFile(f))(t)
		dump = append(dump, b...)
	}
	if !bytes.Contains(dump, []byte(w.user.ID)) {
		t.Fatal("the dump shows nothing")
	}
	secrets := append(a.recoveryCodes(), a.data["base32"].(string), string(a.secret), a.code(0),
		strings.ReplaceAll(a.recoveryCodes()[0], "-", ""))
	for i, s := range secrets {
		storetest.Equal(t, bytes.Contains(dump, []byte(s)), false, "secret", i, "is in the database")
	}
	// The row of another account, copied to this account, does not open.
	store := proof.NewTOTP(w.db)
	d := storetest.Value(store.Get(t.Context(), w.user.ID))(t)
	d.ID += "x"
	storetest.Must(t, w.db.Commit(t.Context(), totp.Remove{UserID: w.user.ID}))
	storetest.Must(t, w.db.Commit(t.Context(), totp.Define{Definition: d}))
	w.clock.Add(60)
	if v, use, err := w.totps.Judge(context.Background(), w.user.ID, a.code(0)); !errors.Is(err, keyring.ErrOpen) ||
		v == challenge.Right || use != nil {
		t.Errorf("%v, %v, %v", v, use, err)
	}
}
