package access

import (
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

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
		if text := string(a.Body); !strings.Contains(text, `"reason":"AMBIGUOUS_PATH","detail":"routers`) {
			t.Errorf("explained: %s", text)
		}
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
