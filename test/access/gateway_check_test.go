package access

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/storetest"
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
	return storetest.Value(g.try(method, uri, more...))(t)
}

// try is ask for goroutines.
func (g *gate) try(method, uri string, more ...blackbox.Headers) (blackbox.Answer, error) {
	h := blackbox.Headers{"X-Original-Method": method, "X-Original-URI": uri, "X-Original-Host": "shop.example:8443",
		"x-auth": g.xAuth, "x-to": "IBAN 7"}
	for _, m := range more {
		maps.Copy(h, m)
	}
	return g.Try("GET", checkPath, nil, h)
}

// route makes a route.
func (g *gate) route(t *testing.T, body string) {
	t.Helper()
	g.Ok(t, "POST", routesPath, body, g.boss)
}

// approve completes the challenge of a refusal and returns the grant.
func (g *gate) approve(t *testing.T, a blackbox.Answer) string {
	t.Helper()
	a.Is(t, 401, "CHALLENGE_REQUIRED")
	a.Status = 200 // the flow is that of any other start
	f := blackbox.FlowOf(t, a)
	done := g.Complete(t, f, f.Method(t, "SMS"), g.Code(t, g.owner, "SMS")).Is(t, 200, "")
	grant := done.At(t, "execResult", "data", "grant")
	if grant == "" || done.Header.Get("castellan-grant") != grant {
		t.Fatalf("no grant: %s", done)
	}
	return grant
}

func granted(grant string) blackbox.Headers { return blackbox.Headers{"castellan-grant": grant} }

// A peer that is no trusted proxy may not ask, except with the key of a service client.
func TestGatewayCheckNeedsTrust(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		ask := func(h blackbox.Headers) blackbox.Answer {
			all := blackbox.Headers{"X-Original-Method": "GET", "X-Original-URI": "/a"}
			maps.Copy(all, h)
			return storetest.Value(n.Try("GET", checkPath, nil, all))(t)
		}
		ask(nil).Is(t, 403, "FORBIDDEN")
		ask(blackbox.Headers{"service-auth": "gate.nothing"}).Is(t, 403, "FORBIDDEN")
		key := s.ServiceKey("gate", "--role", "admin")
		blackbox.Until(t, 10*time.Second, "the key is known", func() bool { return ask(key).Status == 204 })
	})
}

// Other spellings of a guarded path are refused and listed by the doctor, and a path is closed by /**. An unknown host
// is refused where the settings say so. A limit of the firewall is 403.
func TestGatewayRefusals(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("GUARD_UNKNOWN_HOST=refuse")
		g := newGate(t, s)
		g.route(t, payRoute)
		g.route(t, `{"host":"shop.example","method":"*","path":"/internal/**","mode":"refuse"}`)
		for _, uri := range []string{"/orders/7/pay.json", "/internal/x/y"} {
			g.ask(t, "POST", uri).Is(t, 403, "FORBIDDEN")
		}
		g.ask(t, "POST", "/orders/7/paid.json").Is(t, 204, "")
		g.ask(t, "POST", "/free", blackbox.Headers{"X-Original-Host": "other.example"}).Is(t, 403, "FORBIDDEN")
		a := g.Ok(t, "POST", "/admin/guard/explain", map[string]string{"host": "shop.example", "method": "POST",
			"path": "/orders/7/pay.json"}, g.boss)
		storetest.Contains(t, string(a.Body), `"reason":"AMBIGUOUS_PATH","detail":"routers`, "explained")
		g.route(t, `{"host":"shop.example","method":"POST","path":"/orders/*/pay.json","mode":"session"}`)
		g.ask(t, "POST", "/orders/7/pay.json").Is(t, 204, "")
		blackbox.Until(t, 20*time.Second, "the doctor lists the refused spelling", func() bool {
			return strings.Contains(s.Command("", "doctor").Out, `for POST shop.example/orders/*/pay, such as "pay.json"`)
		})
		g.Do(t, "POST", routesPath, `{"method":"GET","path":"/new","mode":"guarded","actionCode":"LOGIN"}`, g.boss).
			Is(t, 400, "INVALID_FIELD")
		g.Do(t, "POST", "/admin/service-keys", `{"name":"new","actions":["LOGIN"]}`, g.boss).Is(t, 400, "INVALID_FIELD")
		blackbox.Rule(t, g.Node, g.boss, "few", "rate_limit", map[string]any{"targetEntities": []string{"127.0.0.1"},
			"targetResources": []string{"GET " + checkPath}, "period": 600_000, "limit": 1})
		g.ask(t, "GET", "/free").Is(t, 204, "")
		if a := g.ask(t, "GET", "/free").Is(t, 403, "RATE_LIMITED"); a.Header.Get("Retry-After") == "" ||
			!strings.Contains(a.Header.Get("castellan-problem"), `"status":403`) {
			t.Errorf("a limit of the firewall: %v", a.Header)
		}
	})
}

// Of 200 uses of a grant on three nodes, of which one is killed meanwhile, at most one succeeds, and no other use
// later. A route is in effect on every node within a second, and a repetition has the same challenge on each
// (D-EXT-11).
func TestGatewayGrantIsUsedOnceInCluster(t *testing.T) {
	t.Parallel()
	c := blackbox.ThreeNodes(t, "HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false")
	g := &gate{Node: c.Nodes[0], s: c.Site, owner: c.Seeded("user")}
	g.boss = blackbox.Admin(t, c.Site, g.Node)
	g.xAuth, _ = g.Session(t, g.owner)
	g.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), g.boss)
	g.route(t, payRoute)
	made := time.Now()
	on := func(n *blackbox.Node) *gate {
		of := *g
		of.Node = n
		return &of
	}
	for _, n := range c.Nodes {
		blackbox.Until(t, blackbox.Within(2), "the route is in effect", func() bool {
			return on(n).ask(t, "POST", "/orders/7/pay", blackbox.Headers{"x-auth": ""}).Status == 401
		})
	}
	t.Logf("in effect on three nodes after %v", time.Since(made))
	ids := map[string]bool{}
	for _, n := range c.Nodes {
		again := on(n).ask(t, "POST", "/orders/7/pay").Is(t, 401, "CHALLENGE_REQUIRED")
		ids[again.At(t, "challenge", "challengeId")] = true
	}
	storetest.Equal(t, len(ids), 1, "challenges of three nodes")
	for round, kill := range []bool{false, true} {
		grant := g.approve(t, g.ask(t, "POST", "/orders/7/pay"))
		sent, _ := blackbox.TryCrowd(200, func(i int) (blackbox.Answer, error) {
			if kill && i == 100 {
				c.Nodes[2].Kill()
			}
			return on(c.Nodes[i%len(c.Nodes)]).try("POST", "/orders/7/pay", granted(grant))
		})
		answers := blackbox.CountByCode(sent)
		if answers["204"] > 1 || !kill && (answers["204"] != 1 || answers["403GRANT_USED"] != 199) {
			t.Errorf("round %d: %v", round, answers)
		}
		// A use whose answer was lost with the node is still the one use.
		used := c.Count("guard_grant WHERE used_at > 0")
		a := g.ask(t, "POST", "/orders/7/pay", granted(grant))
		if used == round+1 && a.Code() != "GRANT_USED" || answers["204"] == 1 && a.Code() != "GRANT_USED" {
			t.Errorf("round %d, afterwards: %s; %d used", round, a, used)
		}
	}
}

// The Go client completes the challenge of a gateway and sends the same request again, with its body.
func TestGoClientBehindGateway(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		s.Set("SESSIONS_BIND=requests")
		g := newGate(t, s)
		g.route(t, `{"method":"POST","path":"/pay","mode":"guarded","actionCode":"PAYOUT",`+
			`"rows":[{"key":"to","label":"To","from":"path","index":0}]}`)
		var digest, leaked string
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			leaked = r.Header.Get("x-auth")
		}))
		t.Cleanup(other.Close)
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				http.Redirect(w, r, other.URL, http.StatusFound)
				return
			}
			body, _ := io.ReadAll(r.Body)
			digest = r.Header.Get("content-digest")
			a := g.ask(t, r.Method, r.RequestURI, blackbox.Headers{"x-auth": r.Header.Get("x-auth"), "x-to": "",
				"castellan-grant": r.Header.Get("castellan-grant"), "content-digest": digest, "X-Original-Host": r.Host,
				"dpop": r.Header.Get("dpop")})
			if a.Status != 204 {
				w.Header().Set("p-auth", a.Header.Get("p-auth"))
				w.WriteHeader(a.Status)
				w.Write(a.Body)
				return
			}
			io.WriteString(w, a.Header.Get("castellan-user")+" "+string(body))
		}))
		t.Cleanup(gateway.Close)
		c := storetest.Value(client.New(g.URL))(t)
		c.Token = g.xAuth
		send := func(value string) (string, error) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", gateway.URL+"/pay", strings.NewReader(`{"pay":1}`))
			storetest.Must(t, err)
			a, err := c.Guarded(r, func(ctx context.Context, f *client.Flow) (client.Outcome, error) {
				if len(f.Rows) == 0 || f.Rows[0].Value == "" {
					t.Errorf("the client gets the rows %v", f.Rows)
				}
				m, _ := f.Method("SMS")
				return f.Complete(ctx, m, value+g.Code(t, g.owner, "SMS"))
			})
			if err != nil {
				return "", err
			}
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			return string(text), err
		}
		storetest.Equal(t, storetest.Value(send(""))(t), g.owner.ID+` {"pay":1}`)
		if !strings.HasPrefix(digest, "sha-256=:") {
			t.Errorf("the digest of the body is %q", digest)
		}
		away, err := http.NewRequestWithContext(t.Context(), "GET", gateway.URL+"/away", nil)
		storetest.Must(t, err)
		a := storetest.Value(c.Guarded(away, nil))(t)
		a.Body.Close()
		if a.StatusCode != http.StatusFound || leaked != "" {
			t.Errorf("a redirect to another server: %d, which got the token %q", a.StatusCode, leaked)
		}
		// A session that is bound to a key needs a proof for each request, also behind a gateway.
		c.Key = client.NewKey(blackbox.ECKey(t))
		f, err := c.Login(t.Context(), client.Credentials{Email: g.owner.Mail, Password: g.owner.Password})
		storetest.Must(t, err)
		m, _ := f.Method("SMS")
		storetest.Must(t, storetest.Err(f.Complete(t.Context(), m, g.Code(t, g.owner, "SMS"))))
		storetest.Equal(t, storetest.Value(send(""))(t), g.owner.ID+` {"pay":1}`, "with a key")
		g.ask(t, "POST", "/pay", blackbox.Headers{"x-auth": c.Token}).Is(t, 401, "DPOP_INVALID")
		if got, err := send("0"); client.CodeOf(err) == "" {
			t.Errorf("a wrong code: %q, %v", got, err)
		}
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
