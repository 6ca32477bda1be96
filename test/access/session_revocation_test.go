package access

import (
	"fmt"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A login that completes during a password change either opens no session, or its session ends with the others
// (D-AUTH-11).
func TestNoSessionSurvivesPasswordChange(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("LIMITS_ENABLED=false")
		demo := s.Seeded("user")
		mine, _ := n.Session(t, demo)
		born := 0
		for round := range 15 {
			login := n.Login(t, demo)
			loginCode := n.Code(t, demo, "SMS")
			next := fmt.Sprintf("lantern-orchard-%d", round)
			change := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/password", map[string]string{"oldPassword": demo.Password,
				"password": next, "passwordVerify": next}, blackbox.Headers{"x-auth": mine}))
			changeCode := n.Code(t, demo, "SMS")
			var begun, changed blackbox.Answer
			var begunErr, changedErr error
			var wg sync.WaitGroup
			wg.Go(func() { begun, begunErr = n.TryComplete(login, login.Method(t, "SMS"), loginCode) })
			wg.Go(func() { changed, changedErr = n.TryComplete(change, change.Method(t, "SMS"), changeCode) })
			wg.Wait()
			if begunErr != nil || changedErr != nil {
				t.Fatal(begunErr, changedErr)
			}
			changed.Is(t, 200, "")
			demo.Password = next
			if token := begun.Header.Get("x-auth"); token != "" {
				born++
				n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token}).Is(t, 401, "TOKEN_REVOKED")
			}
			storetest.Equal(t, len(blackbox.Sessions(t, n, mine)), 1, "sessions after round", round)
		}
		t.Logf("%d of 15 logins came first", born)
	})
}
