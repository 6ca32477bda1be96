package access

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// The outcome of a login is available in three ways (REQ-GEN-05, D-SOCK-07): the last completion, the socket
// and the result. All carry the same token.
func TestLoginOutcomeByCompletionSocketAndResult(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		f := startOfLogin(t, n, demo)

		n.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED").With(t, "Retry-After", "1")
		sockets := []*blackbox.Socket{
			n.SocketIn(t, f, blackbox.InHeader),
			n.SocketIn(t, f, blackbox.InQuery),
			n.SocketIn(t, f, blackbox.InSubprotocol),
		}
		poll := blackbox.LongPoll(n, f)

		sms := f.Method(t, "SMS")
		completed := time.Now()
		final := n.Complete(t, f, sms, n.Code(t, demo, "SMS")).Is(t, 200, "").Keys(t, "action", "execResult", "challengeId")
		token := blackbox.CheckFinal(t, f, final)

		polled := <-poll
		if polled.Err != nil || polled.At.Sub(completed) > blackbox.Within(5) {
			t.Fatalf("the long poll came after %v: %v", polled.At.Sub(completed), polled.Err)
		}
		blackbox.SameOutcome(t, final, polled.Answer)
		for _, socket := range sockets {
			frames(t, socket, f, token, sms)
		}
		blackbox.SameOutcome(t, final, n.Result(t, f))
		if got := n.Result(t, f).Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("the result may be cached: %q", got)
		}
		frames(t, n.Socket(t, f), f, token, sms) // replayed to a late socket

		// The exact repeat gets the same answer; any other request does not (D-2FA-14).
		code := n.Code(t, demo, "SMS")
		blackbox.SameOutcome(t, final, n.Complete(t, f, sms, " "+code[:3]+" "+code[3:]+" "))
		n.Complete(t, f, sms, blackbox.WrongFor(code)).Is(t, 409, "METHOD_ALREADY_COMPLETED")
		n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, demo, "MAIL")).Is(t, 409, "CHALLENGE_CLOSED")
		n.Renew(t, f, f.Method(t, "MAIL")).Is(t, 409, "CHALLENGE_CLOSED")

		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
	})
}

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
		if got := s.Count("session"); got != 1 {
			t.Errorf("%d sessions, want 1", got)
		}
	})
}

// startOfLogin logs in and checks every field of a challenge's start.
func startOfLogin(t *testing.T, n *blackbox.Node, a blackbox.Account) blackbox.Flow {
	t.Helper()
	before := time.Now().UnixMilli()
	got := n.Ok(t, "POST", "/auth/login", blackbox.LoginBody(a), nil).Keys(t, "challenge")
	after := time.Now().UnixMilli()
	f := blackbox.FlowOf(t, got)
	if f.TS < before || f.TS > after || f.Status != "PENDING" || f.Expire != 600 {
		t.Errorf("challenge %+v", f.Challenge)
	}
	if len(f.MethodList) != 2 || f.MethodList[0].Name != "SMS" || f.MethodList[1].Name != "MAIL" {
		t.Fatalf("methods %+v, want SMS and MAIL, the ones the account owns", f.MethodList)
	}
	hints := map[string]string{
		"SMS":  "+90" + strings.Repeat("*", 8) + a.Phone[8:],
		"MAIL": a.Mail[:1] + "***@" + strings.SplitN(a.Mail, "@", 2)[1],
	}
	for _, m := range f.MethodList {
		if m.ID == "" || m.Expire != 120 || m.RenewStart != 60 || m.Hint != hints[m.Name] {
			t.Errorf("method %+v, want a hint like %s", m, hints[m.Name])
		}
	}
	var shape struct{ Challenge json.RawMessage }
	got.Read(t, &shape)
	if k := slices.Sorted(maps.Keys(blackbox.Keys(t, shape.Challenge))); !slices.Equal(
		k,
		[]string{"challengeId", "expire", "methodList", "status", "ts"},
	) {
		t.Errorf("a challenge of the keys %v", k)
	}
	claims := blackbox.ClaimsOf(t, f.PAuth)
	if k := slices.Sorted(maps.Keys(claims)); !slices.Equal(k, []string{"aud", "cid", "exp", "iat", "iss", "jti", "tid"}) {
		t.Errorf("p-auth claims %v: it is readable and says more, or less, than it should", k)
	}
	if claims["cid"] != f.ChallengeID || claims["aud"] != "p-auth" ||
		int64(claims["exp"].(float64)) != (f.TS+720_000)/1000 {
		t.Errorf("p-auth claims %v", claims)
	}
	return f
}

// frames reads the two messages of a login that one method completed.
func frames(t *testing.T, socket *blackbox.Socket, f blackbox.Flow, token string, m blackbox.Method) {
	t.Helper()
	done := socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
	if string(done) != `{"methodId":"`+m.ID+`","method":"`+m.Name+`"}` {
		t.Errorf("METHOD_COMPLETE of %s", done)
	}
	var action struct {
		Success bool
		Data    map[string]string
		Headers map[string]string
	}
	outcome := socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
	if err := json.Unmarshal(outcome, &action); err != nil {
		t.Fatal(err)
	}
	if k := slices.Sorted(maps.Keys(blackbox.Keys(t, outcome))); !slices.Equal(k, []string{"data", "headers", "success"}) {
		t.Errorf("ACTION_COMPLETE of the keys %v", k)
	}
	if !action.Success || len(action.Data) != 1 || action.Data["sessionKey"] != blackbox.ClaimsOf(t, token)["sid"] ||
		len(action.Headers) != 1 ||
		action.Headers["x-auth"] != token {
		t.Errorf("ACTION_COMPLETE of %s, want the outcome with x-auth %s", outcome, token)
	}
}
