package faults

import (
	"testing"

	"castellan/internal/blackbox"
)

// Two processes share a database without a cluster. A challenge that was completed at one is complete at the
// other, even if the other read it before.
func TestTwoProcessesWithoutClusterShareChallenges(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "postgres")
	a, b := s.Start(), s.Start()
	demo := s.Seeded("user")
	f := a.Login(t, demo)
	a.Result(t, f).Is(t, 409, "CHALLENGE_NOT_COMPLETED")
	waiting := make(chan blackbox.Answer, 1)
	go func() {
		got, _ := a.Try("GET", blackbox.ResultPath, nil, blackbox.Headers{"p-auth": f.PAuth, "Prefer": "wait=2"})
		waiting <- got
	}()
	final := b.Complete(t, f, f.Method(t, "SMS"), b.Code(t, demo, "SMS")).Is(t, 200, "")
	token := blackbox.CheckFinal(t, f, final)
	for door, got := range map[string]blackbox.Answer{"asked": a.Result(t, f), "waited": <-waiting} {
		if got.Status != 200 || got.Header.Get("x-auth") != token {
			t.Errorf("%s: %s", door, got)
		}
	}
	socket := a.Socket(t, f)
	socket.Expect(f, "LOGIN", "METHOD_COMPLETE")
	socket.Expect(f, "LOGIN", "ACTION_COMPLETE")
}
