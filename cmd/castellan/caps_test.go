package main

import (
	"fmt"
	"testing"

	"castellan/internal/blackbox"
)

// Messages cost money, so they are capped (D-EXT-05): a public start beyond a
// cap answers as ever, with a method that no value completes; somebody logged
// in is told. What was sent is counted from rows, so no restart resets it.
func TestMessageCaps(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_DESTINATION_PER_HOUR=4", "LIMITS_DESTINATION_PER_DAY=4", "MFA_GUARDED="+guardedKey+"="+guardedCode)
		n := s.Start()
		boss := s.Seeded("admin")
		who := admin(t, s, n)
		for range 3 {
			n.Login(t, boss)
		}
		sent := len(n.Letters(t, ""))
		within := n.Login(t, s.Seeded("user")) // somebody else's messages are counted apart
		n.Complete(t, within, within.Method(t, "SMS"), n.Code(t, s.Seeded("user"), "SMS")).Is(t, 200, "")
		if got := len(n.Letters(t, "")); sent != 8 || got != 10 {
			t.Fatalf("%d letters and then %d, want 8 and 10", sent, got)
		}
		for round := range 2 {
			capped := n.Login(t, boss)
			if len(capped.MethodList) != 2 || capped.MethodList[0].Hint == "" || len(n.Letters(t, boss.Number())) != 4 {
				t.Errorf("beyond the cap: %+v, %d letters", capped.Challenge, len(n.Letters(t, boss.Number())))
			}
			for _, m := range capped.MethodList {
				attemptsLeft(t, n.Complete(t, capped, m, n.Code(t, boss, m.Name)))
			}
			n.Do(t, "POST", actionsPath, newAction("ONE_MORE"), who).Is(t, 429, "RATE_LIMITED")
			if round == 0 {
				n.Kill()
				n = s.Start()
			}
		}
	})
}

// The same holds for the messages that one address causes, to any receiver.
func TestMessagesOfOnePlace(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_IP_PER_HOUR=6", "HTTP_TRUSTED_PROXIES=127.0.0.1")
		n := s.Start()
		login := func(a blackbox.Account, from string) {
			t.Helper()
			n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), blackbox.Headers{"X-Forwarded-For": from}).Is(t, 200, "")
		}
		for i := range 4 {
			login(s.AddUser("user"), fmt.Sprintf("2001:db8:1:1::%x", i+1))
		}
		if got := len(n.Letters(t, "")); got != 6 {
			t.Errorf("%d letters from one network, want 6", got)
		}
		login(s.AddUser("user"), "2001:db8:1:2::1")
		if got := len(n.Letters(t, "")); got != 8 {
			t.Errorf("%d letters with those of another network, want 8", got)
		}
	})
}
