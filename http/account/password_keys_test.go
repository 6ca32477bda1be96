package account_test

import (
	"testing"
	"time"

	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
)

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
			t.Errorf("a phone nobody asked for has subject %q, %d former, %v", subject, len(former), err)
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
