package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// A client that repeats a request gets the challenge that is open for it, with a token that works. Another request,
// session or digest has its own, and so has a repetition after a wrong value (D-EXT-11).
func TestGatewayRepeatsOpenChallenge(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		g := newGate(t, s)
		g.route(t, payRoute)
		const pay = "/orders/7/pay?amount=12"
		ask := func(uri string, more ...blackbox.Headers) blackbox.Flow {
			t.Helper()
			a := g.ask(t, "POST", uri, more...).Is(t, 401, "CHALLENGE_REQUIRED")
			a.Status = 200
			return blackbox.FlowOf(t, a)
		}
		first := ask(pay)
		sent := len(g.Letters(t, g.owner.Number()))
		for range 20 {
			if again := ask(pay); again.ChallengeID != first.ChallengeID || again.PAuth == "" {
				t.Fatalf("the repetition has challenge %s, want %s", again.ChallengeID, first.ChallengeID)
			}
		}
		if got := len(g.Letters(t, g.owner.Number())); got != sent {
			t.Errorf("the repetitions sent %d messages", got-sent)
		}
		x, _ := g.Session(t, g.owner)
		seen := map[string]string{first.ChallengeID: "the first request"}
		other := func(name, uri string, more ...blackbox.Headers) {
			t.Helper()
			f := ask(uri, more...)
			if of, known := seen[f.ChallengeID]; known {
				t.Errorf("%s has the challenge of %s", name, of)
			}
			seen[f.ChallengeID] = name
		}
		other("another order", "/orders/8/pay?amount=12")
		other("another header", pay, blackbox.Headers{"x-to": "IBAN 8"})
		other("a digest", pay, blackbox.Headers{"Content-Digest": "sha-256=:abc=:"})
		other("another session", pay, blackbox.Headers{"x-auth": x})

		// The token of a repetition completes the challenge, and the grant is that of the request.
		again := ask(pay)
		code := g.Code(t, g.owner, "SMS")
		a := g.Complete(t, again, again.Method(t, "SMS"), blackbox.WrongFor(code))
		a.Is(t, 422, "OTP_INVALID")
		other("a request after a wrong value", pay)
	})
}
