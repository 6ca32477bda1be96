package actors_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
)

// try starts a challenge. It returns the methods of the challenge and the number of messages sent.
func (w *world) try(change func(*challenge.StartRequest)) (names []challenge.Name, sent int, err error) {
	w.t.Helper()
	r := challenge.StartRequest{Action: "LOGIN", Account: w.user.Account(),
		Starter: challenge.Starter{IP: "203.0.113.9"}, Proven: true}
	if change != nil {
		change(&r)
	}
	before := w.sent
	s, err := w.engine.Start(w.t.Context(), r)
	for _, m := range s.Challenge.Methods {
		names = append(names, m.Name)
	}
	return names, w.sent - before, err
}

func unproven(r *challenge.StartRequest) { r.Proven = false }

func withTOTP(r *challenge.StartRequest) { r.Account.TOTP = true }

// refused expects 429 with the time after which the caller may retry.
func (w *world) refused(err error, after, most time.Duration) {
	w.t.Helper()
	storetest.Wants(w.t, err, fault.RateLimited)
	var f *fault.Error
	if errors.As(err, &f); f.RetryAfter <= after || f.RetryAfter > most {
		w.t.Errorf("try again after %v, want more than %v and at most %v", f.RetryAfter, after, most)
	}
}

// A start without a proof that exceeds a cap learns nothing. A start with a proof learns when to retry, and its
// messages are not counted (D-EXT-05).
func TestCapsOfAUser(t *testing.T) {
	w := open(t)
	set := func(c stepup.Caps) { w.engine.Starter.Config.Caps, w.engine.Starter.Config.MaxOpen = c, 0 }
	caps := stepup.Caps{DestinationHour: 4, DestinationDay: 10, UserDay: 50}
	set(caps)
	for n := range 4 {
		// Half of the cap is for starts without a proof.
		if names, sent, err := w.try(unproven); err != nil || len(names) != 4 || (sent == 2) != (n < 2) {
			t.Errorf("unproven start %d: %v, %d messages, %v", n, names, sent, err)
		}
	}
	for range 2 {
		if _, sent, err := w.try(nil); sent != 2 || err != nil {
			t.Fatalf("%d messages, %v", sent, err)
		}
	}
	for range 3 {
		_, sent, err := w.try(nil)
		if w.refused(err, 59*time.Minute, time.Hour); sent != 0 {
			t.Errorf("%d messages beyond the cap", sent)
		}
	}
	storetest.Equal(t, w.engine.Starter.Capped.Load(), 3, "caps were met")
	w.start()
	set(caps)
	if _, _, err := w.try(nil); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("a restart forgot the caps: %v", err)
	}
	// A user with a method that needs no code is admitted, with the codes that may still be sent.
	if names, sent, err := w.try(withTOTP); err != nil || sent != 0 || !slices.Equal(names, []challenge.Name{"TOTP"}) {
		t.Errorf("%v, %d messages, %v", names, sent, err)
	}
	elsewhere := func(r *challenge.StartRequest) { r.Account.Mail = "new@example.com" }
	for range 5 {
		if _, sent, err := w.try(elsewhere); fault.CodeOf(err) != fault.RateLimited || sent != 0 {
			t.Errorf("one of two messages: %d, %v", sent, err)
		}
	}
	for n := range 6 { // the refused starts counted nothing
		names, sent, err := w.try(func(r *challenge.StartRequest) { elsewhere(r); withTOTP(r) })
		if want := 1 - n/4; err != nil || sent != want || len(names) != 1+want || slices.Contains(names, "SMS") {
			t.Errorf("start %d: %v, %d messages, %v", n, names, sent, err)
		}
	}
}
