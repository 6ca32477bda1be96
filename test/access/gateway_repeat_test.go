package access

import (
	"fmt"
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
		a := g.Complete(t, again, again.Method(t, "SMS"), wrongCode(code))
		a.Is(t, 422, "OTP_INVALID")
		other("a request after a wrong value", pay)
	})
}

// The repetition is the same on every node, and its grant passes once.
func TestGatewayRepeatsOnEveryNode(t *testing.T) {
	c := blackbox.ThreeNodes(t, "HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
	g := &gate{Node: c.Nodes[0], s: c.Site, owner: c.Site.Seeded("user")}
	g.boss = blackbox.Admin(t, c.Site, g.Node)
	g.xAuth, _ = g.Session(t, g.owner)
	g.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), g.boss)
	g.route(t, `{"method":"POST","path":"/pay","mode":"guarded","actionCode":"PAYOUT"}`)
	ids := map[string]int{}
	var last blackbox.Answer
	for _, n := range c.Nodes {
		on := *g
		on.Node = n
		blackbox.Until(t, blackbox.Within(5), "the route is known", func() bool {
			last = on.ask(t, "POST", "/pay")
			return last.Status == 401
		})
		ids[blackbox.FlowOf(t, blackbox.Answer{Status: 200, Header: last.Header, Body: last.Body}).ChallengeID]++
	}
	if len(ids) != 1 {
		t.Errorf("three nodes gave %d challenges", len(ids))
	}
	grant := g.approve(t, last)
	passed := 0
	for _, n := range c.Nodes {
		on := *g
		on.Node = n
		if on.ask(t, "POST", "/pay", granted(grant)).Status == 204 {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("%d of three uses passed", passed)
	}
}

// wrongCode returns another code of the same length.
func wrongCode(code string) string {
	return fmt.Sprint((int(code[0]-'0')+1)%10) + code[1:]
}
