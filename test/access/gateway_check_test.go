package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

const (
	checkPath  = "/guard/check"
	routesPath = "/admin/guard/routes"
	payRoute   = `{"host":"shop.example","method":"POST","path":"/orders/*/pay","mode":"guarded","actionCode":"PAYOUT",` +
		`"rows":[{"key":"order","label":"Order","from":"path","index":1},` +
		`{"key":"amount","label":"Amount","from":"query","name":"amount"},` +
		`{"key":"to","label":"To","from":"header","name":"x-to"}]}`
)

// gate is a node behind gateways, which ask from loopback.
type gate struct {
	*blackbox.Node
	s     *blackbox.Site
	boss  blackbox.Headers
	owner blackbox.Account
	xAuth string
}

func newGate(t *testing.T, s *blackbox.Site) *gate {
	t.Helper()
	s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
	g := &gate{Node: s.Start(), s: s, owner: s.Seeded("user")}
	g.boss = blackbox.Admin(t, s, g.Node)
	g.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), g.boss)
	g.xAuth, _ = g.Session(t, g.owner)
	g.owner.ID = s.Text("SELECT id FROM users WHERE email = '" + g.owner.Mail + "'")
	return g
}

// ask asks about a request as nginx does.
func (g *gate) ask(t *testing.T, method, uri string, more ...blackbox.Headers) blackbox.Answer {
	t.Helper()
	h := blackbox.Headers{"X-Original-Method": method, "X-Original-URI": uri, "X-Original-Host": "shop.example:8443",
		"x-auth": g.xAuth, "x-to": "IBAN 7"}
	for _, m := range more {
		maps.Copy(h, m)
	}
	a, err := g.Try("GET", checkPath, nil, h)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// route makes a route and waits until it is in effect.
func (g *gate) route(t *testing.T, body string) int64 {
	t.Helper()
	var made struct{ Data struct{ ID int64 } }
	g.Ok(t, "POST", routesPath, body, g.boss).Read(t, &made)
	return made.Data.ID
}

// approve completes the challenge of a refusal and returns the grant.
func (g *gate) approve(t *testing.T, a blackbox.Answer) string {
	t.Helper()
	a.Is(t, 401, "CHALLENGE_REQUIRED")
	a.Status = 200 // the flow is that of any other start
	f := blackbox.FlowOf(t, a)
	done := g.Complete(t, f, f.Method(t, "SMS"), g.Code(t, g.owner, "SMS"))
	var final struct {
		ExecResult struct {
			Success bool
			Data    struct{ Grant string }
		}
	}
	if done.Is(t, 200, "").Read(t, &final); final.ExecResult.Data.Grant == "" ||
		done.Header.Get("castellan-grant") != final.ExecResult.Data.Grant {
		t.Fatalf("no grant: %s", done)
	}
	return final.ExecResult.Data.Grant
}

func granted(grant string) blackbox.Headers { return blackbox.Headers{"castellan-grant": grant} }

// A guarded request is passed once, for its user and as it was approved (D-EXT-11).
func TestGatewayCheck(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		g := newGate(t, s)
		const pay = "/orders/7/pay?b=2&amount=12"
		digest := blackbox.Headers{"Content-Digest": "sha-256=:abc=:"}
		g.ask(t, "POST", pay).Is(t, 204, "")
		id := g.route(t, payRoute)
		g.route(t, `{"method":"*","path":"/me","mode":"session"}`)

		// Requests without a route, and those that need a session only.
		none := blackbox.Headers{"x-auth": ""}
		if a := g.ask(t, "POST", "/orders/7", none); a.Status != 204 || a.Header.Get("castellan-user") != "" {
			t.Errorf("no route: %s", a)
		}
		g.ask(t, "POST", "/orders/7/Pay", none).Is(t, 403, "FORBIDDEN") // many servers ignore the case
		g.ask(t, "post", pay, none).Is(t, 403, "FORBIDDEN")
		g.ask(t, "GET", pay, none).Is(t, 204, "")
		g.ask(t, "POST", pay, blackbox.Headers{"X-Original-Host": "other.example"}).Is(t, 204, "")
		if a := g.ask(t, "GET", "/me"); a.Status != 204 || a.Header.Get("castellan-user") != g.owner.ID {
			t.Errorf("a session: %s %v", a, a.Header)
		}
		g.ask(t, "GET", "/me", none).Is(t, 401, "UNAUTHENTICATED")
		// Other spellings do not get around a route.
		g.ask(t, "POST", "/orders/7/p%61y", none).Is(t, 401, "UNAUTHENTICATED")
		for _, uri := range []string{"/x/../orders/7/pay", "/orders/7%2fpay"} {
			g.ask(t, "POST", uri, none).Is(t, 403, "FORBIDDEN")
		}
		// A client cannot name another request than its gateway does.
		g.ask(t, "POST", pay, blackbox.Headers{"X-Forwarded-Uri": "/free"}).Is(t, 403, "FORBIDDEN")

		first := g.ask(t, "POST", pay, digest)
		if p := first.Header.Get("castellan-problem"); first.Header.Get("WWW-Authenticate") != "Castellan" ||
			!json.Valid([]byte(p)) || !strings.Contains(p, `"challenge":{"challengeId"`) {
			t.Errorf("the refusal has the headers %v", first.Header)
		}
		grant := g.approve(t, first)
		changed := func(name, uri string, more ...blackbox.Headers) {
			t.Helper()
			if a := g.ask(t, "POST", uri, append([]blackbox.Headers{digest, granted(grant)}, more...)...); a.Status != 403 ||
				a.Code() != "GRANT_MISMATCH" {
				t.Errorf("%s: %s", name, a)
			}
		}
		changed("another order", "/orders/8/pay?b=2&amount=12")
		changed("another amount", "/orders/7/pay?b=2&amount=13")
		changed("another digest", pay, blackbox.Headers{"Content-Digest": "sha-256=:abd=:"})
		changed("no digest", pay, blackbox.Headers{"Content-Digest": ""})
		changed("another header", pay, blackbox.Headers{"x-to": "IBAN 8"})
		x, _ := g.Session(t, g.owner)
		changed("another session", pay, blackbox.Headers{"x-auth": x})
		y, _ := g.Session(t, s.AddUser("user"))
		changed("another user", pay, blackbox.Headers{"x-auth": y})
		changed("another signature", pay, granted(grant[:len(grant)-8]+"AAAAAAAA"))
		passed := g.ask(t, "POST", "/orders/7/pay?amount=12&b=2", digest, granted(grant)).Is(t, 204, "")
		if assertion := passed.Header.Get("castellan-assertion"); passed.Header.Get("castellan-user") != g.owner.ID ||
			strings.Count(assertion, ".") != 2 {
			t.Errorf("the upstream gets %v", passed.Header)
		}
		g.ask(t, "POST", pay, digest, granted(grant)).Is(t, 403, "GRANT_USED")
		changed("an assertion as a grant", pay, granted(passed.Header.Get("castellan-assertion")))
		if n := s.Count("audit WHERE action = 'GUARD_PASS' AND user_id = '" + g.owner.ID + "'"); n != 1 {
			t.Errorf("%d rows of the audit", n)
		}

		// Of many uses at once, one succeeds.
		grant = g.approve(t, g.ask(t, "POST", pay))
		uses := blackbox.CountByCode(blackbox.Crowd(t, 200, func(int) (blackbox.Answer, error) {
			return g.ask(t, "POST", pay, granted(grant)), nil
		}))
		if uses["204"] != 1 || uses["403GRANT_USED"] != 199 {
			t.Errorf("200 uses of a grant: %v", uses)
		}

		// Routes on trial are only explained; a change is in effect at once on this node.
		g.Ok(t, "PATCH", routesPath, fmt.Sprintf(`{"id":%d,"status":"TRIAL"}`, id), g.boss)
		g.ask(t, "POST", pay, none).Is(t, 204, "")
		explain := func(path, want string) {
			t.Helper()
			a := g.Ok(t, "POST", "/admin/guard/explain", map[string]any{"host": "shop.example", "method": "POST", "path": path,
				"headers": []map[string]string{{"name": "X-To", "value": "me"}}}, g.boss)
			if string(a.Body) != want {
				t.Errorf("%s: %s, want %s", path, a.Body, want)
			}
		}
		rows := `"rows":[{"key":"order","label":"Order","value":"7"},{"key":"amount","label":"Amount","value":"12"},` +
			`{"key":"to","label":"To","value":"me"}]}}`
		explain(pay, fmt.Sprintf(`{"data":{"routeId":%d,"decision":"ALLOW","reason":"TRIAL",`, id)+rows)
		g.Ok(t, "PATCH", routesPath, fmt.Sprintf(`{"id":%d,"status":"ACTIVE"}`, id), g.boss)
		explain(pay, fmt.Sprintf(`{"data":{"routeId":%d,"decision":"CHALLENGE","reason":"ROUTE",`, id)+rows)
		g.Ok(t, "DELETE", routesPath, fmt.Sprintf(`{"id":%d}`, id), g.boss)
		g.ask(t, "POST", pay, none).Is(t, 204, "")
		g.Do(t, "DELETE", routesPath, fmt.Sprintf(`{"id":%d}`, id), g.boss).Is(t, 404, "RECORD_NOT_FOUND")
	})
}

// A peer that is no trusted proxy may not ask, except with the key of a service client.
func TestGatewayCheckNeedsTrust(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		ask := func(h blackbox.Headers) blackbox.Answer {
			all := blackbox.Headers{"X-Original-Method": "GET", "X-Original-URI": "/a"}
			maps.Copy(all, h)
			a, err := n.Try("GET", checkPath, nil, all)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		ask(nil).Is(t, 403, "FORBIDDEN")
		ask(blackbox.Headers{"service-auth": "gate.nothing"}).Is(t, 403, "FORBIDDEN")
		key := s.ServiceKey("gate", "--role", "admin")
		blackbox.Until(t, 10*time.Second, "the key is known", func() bool { return ask(key).Status == 204 })
	})
}

// Without the database no request passes: not even one that has no route.
func TestGatewayCheckWithoutDatabase(t *testing.T) {
	blackbox.OnOne(t, "postgres", func(t *testing.T, s *blackbox.Site) {
		network := s.Behind()
		g := newGate(t, s)
		g.route(t, payRoute)
		grant := g.approve(t, g.ask(t, "POST", "/orders/7/pay"))
		network.Become(blackbox.Resets)
		blackbox.Until(t, 20*time.Second, "the guard refuses", func() bool {
			return g.ask(t, "GET", "/free").Status == 503
		})
		for range 10 {
			g.ask(t, "POST", "/orders/7/pay", granted(grant)).Is(t, 503, "UNAVAILABLE")
			g.ask(t, "POST", "/orders/7/pay").Is(t, 503, "UNAVAILABLE")
			g.ask(t, "GET", "/free").Is(t, 503, "UNAVAILABLE")
		}
		network.Become(blackbox.Good)
		blackbox.Until(t, 20*time.Second, "the guard passes", func() bool { return g.ask(t, "GET", "/free").Status == 204 })
		blackbox.Until(t, 20*time.Second, "the grant is used or too old", func() bool {
			a := g.ask(t, "POST", "/orders/7/pay", granted(grant))
			return a.Status == 204 || a.Code() == "TOKEN_EXPIRED"
		})
	})
}
