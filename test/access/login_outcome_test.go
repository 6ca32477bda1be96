package access

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// An acknowledged outcome survives the process. Killed between completion and reading, the service returns the
// same outcome, with the same token, by the socket and the result.
func TestLoginOutcomeSurvivesKill(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		f := n.Login(t, demo)
		sms, code := f.Method(t, "SMS"), n.Code(t, demo, "SMS")
		final := n.Complete(t, f, sms, code).Is(t, 200, "")
		n.Kill()

		n = s.Start()
		token := blackbox.CheckFinal(t, f, final)
		blackbox.SameOutcome(t, final, n.Result(t, f))
		frames(t, n.Socket(t, f), f, token, sms)
		blackbox.SameOutcome(t, final, n.Complete(t, f, sms, code))
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
		s.Has(1, "session")
	})
}

// frames reads the two messages of a login that one method completed.
func frames(t *testing.T, socket *blackbox.Socket, f blackbox.Flow, token string, m blackbox.Method) {
	t.Helper()
	done := socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
	storetest.Equal(t, string(done), `{"methodId":"`+m.ID+`","method":"`+m.Name+`"}`, "METHOD_COMPLETE")
	var action struct {
		Success bool
		Data    map[string]string
		Headers map[string]string
	}
	outcome := socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
	storetest.Must(t, json.Unmarshal(outcome, &action))
	if k := slices.Sorted(maps.Keys(blackbox.Keys(t, outcome))); !slices.Equal(k, []string{"data", "headers", "success"}) {
		t.Errorf("ACTION_COMPLETE of the keys %v", k)
	}
	if !action.Success || len(action.Data) != 1 || action.Data["sessionKey"] != blackbox.ClaimsOf(t, token)["sid"] ||
		len(action.Headers) != 1 ||
		action.Headers["x-auth"] != token {
		t.Errorf("ACTION_COMPLETE of %s, want the outcome with x-auth %s", outcome, token)
	}
}
