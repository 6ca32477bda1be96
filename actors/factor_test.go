package actors_test

import (
	"strings"
	"sync"
	"testing"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
)

// A hundred wrong values in a row switch a factor off, regardless of windows and parallel attempts; no value is right
// any more. The owner receives two notices. Proving another factor switches it on again (D-2FA-13).
func TestGuessedFactorGoesOff(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.rules = new(challenge.DefaultRules())
		w.rules.OTPBudget, w.rules.ChallengeAttempts, w.rules.MethodAttempts = 1000, 1000, 1000
		app := w.setUp()
		w.start() // with these rules
		w.reload()

		open := []challenge.Challenge{w.begin("LOGIN", ""), w.begin("LOGIN", ""), w.begin("LOGIN", "")}
		code := w.code(w.method(open[0], challenge.SMS).ID)
		const guesses = 120
		refused := make(chan fault.Code, guesses)
		var wg sync.WaitGroup
		for i := range guesses {
			wg.Go(func() {
				c := open[i%3]
				n := []challenge.Name{challenge.SMS, challenge.MAIL}[i/3%2]
				for { // three owners share one budget: one that was fenced too often returns a retryable error
					_, err := w.answer(c, n, wrongOf(w.code(w.method(c, n).ID)))
					if fault.CodeOf(err) != fault.Unavailable {
						refused <- fault.CodeOf(err)
						return
					}
				}
			})
		}
		wg.Wait()
		close(refused)
		for got := range refused {
			storetest.Equal(t, got, fault.OTPInvalid, "a guess was answered")
		}
		b, err := factor.NewChallenges(w.db).Budget(t.Context(), w.user.ID, challenge.FlowLogin)
		storetest.Must(t, err)
		w.reload()
		if b.OTPRow != 100 || b.TOTPRow != 0 || len(b.OTP) != guesses ||
			!w.user.FactorsOff.Has(challenge.FlowLogin, challenge.SMS) {
			t.Errorf("a row of %d, %d counted; off %b", b.OTPRow, len(b.OTP), w.user.FactorsOff)
		}
		if told := w.told(); told["factor-guessed"] != 1 || told["factor-off"] != 1 {
			t.Errorf("notices %v", told)
		}
		_, err = w.answer(open[0], challenge.SMS, code)
		storetest.Wants(t, err, fault.OTPInvalid) // although it is the right code

		// The factor is not offered. Another factor is, proves the owner, and switches the first one on.
		c := w.begin("LOGIN", "")
		for _, m := range c.Methods {
			storetest.Equal(t, m.Name, challenge.TOTP, "is offered")
		}
		w.clock.Add(60)
		_, err = w.answer(c, challenge.TOTP, app.code(0))
		storetest.Must(t, err)
		w.reload()
		b, err = factor.NewChallenges(w.db).Budget(t.Context(), w.user.ID, challenge.FlowLogin)
		if storetest.Must(t, err); w.user.FactorsOff != 0 || b.OTPRow != 0 {
			t.Errorf("after a login by another factor: off %b, a row of %d", w.user.FactorsOff, b.OTPRow)
		}
		c = w.begin("LOGIN", "")
		storetest.Is(t, storetest.Err(w.right(c, challenge.SMS)), nil, "the factor is on again")
	})
}

// told counts the notices by kind. Their rows contain only ids, so the texts are decrypted.
func (w *world) told() map[string]int {
	w.t.Helper()
	told := map[string]int{}
	ms := storetest.Value(delivery.NewOutbox(w.db).Recent(w.t.Context(), nil, 0))(w.t)
	for _, m := range ms {
		if m.ChallengeID != "" {
			continue
		}
		plain, err := w.engine.Starter.Ring.Open(m.Payload, challenge.PayloadData("", m.MethodID, 0))
		storetest.Must(w.t, err)
		for kind, words := range map[string]string{"factor-guessed": "Wrong codes were tried",
			"factor-off": "account was switched off"} {
			if strings.Contains(string(plain), words) {
				told[kind]++
			}
		}
	}
	return told
}
