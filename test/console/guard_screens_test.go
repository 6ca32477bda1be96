package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// An operator guards requests of a gateway: on trial first, then with a challenge. The operator reads the evidence of
// an approval, links a login of another service, and lets a service start challenges.
func TestConsoleGuard(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("HTTP_TRUSTED_PROXIES=127.0.0.1",
		"GUARD_ISSUERS=issuer=https://id.example.com jwks_url=https://id.example.com/keys audience=castellan")
	n := blackbox.Patient(s).Start()
	boss, demo := s.Seeded("admin"), s.Seeded("user")
	auth, _ := n.Session(t, boss)
	n.Ok(t, "POST", blackbox.ActionsPath, blackbox.NewAction("PAYOUT"), blackbox.Headers{"x-auth": auth})
	x, _ := n.Session(t, demo)
	tab := webtest.Browser(t)
	c := &guarding{officer{viewer{tab, t}, n, boss}, auth, payPath}
	c.visit("/gateways")
	c.guards(x)
	c.readsEvidence(s, blackbox.Enroll(t, n, demo, x, device.ES256, ""), x)
	c.links(s.Text("SELECT id FROM users WHERE email = '" + demo.Mail + "'"))
	c.letsServiceStart()
}

// guarding is an officer whose session other tabs share, so that a page can be opened by its address.
type guarding struct {
	officer
	token string
	path  string // of the payment
}

func (c *guarding) visit(path string) {
	c.t.Helper()
	enters(c.Tab, c.n, c.token, path, "")
}

const payPath = "/orders/7/pay?total=12"

// ask asks about a payment as a gateway does.
func (c *guarding) ask(x string, more ...string) blackbox.Answer {
	c.t.Helper()
	h := blackbox.Headers{"X-Original-Method": "POST", "X-Original-URI": c.path, "X-Original-Host": "shop.example",
		"x-auth": x}
	if len(more) > 0 {
		h["castellan-grant"] = more[0]
	}
	return storetest.Value(c.n.Try("GET", "/guard/check", nil, h))(c.t)
}

func (c *guarding) guards(x string) {
	const routes = "/admin/guard/routes"
	c.Click(mark("write-" + routes))
	c.Type(mark("field-path"), "/orders/*/pay")
	c.choose(mark("field-actionCode"), "PAYOUT")
	c.Click(mark("row-add"))
	c.Type(mark("row-label-1"), "Order")
	c.Type(mark("row-key-1"), "order")
	c.chooseOwn(mark("row-from-1"), "path")
	c.chooseOwn(mark("row-index-1"), "1")
	c.look("gateway-add")
	c.Click(mark("send"))
	c.See(`[data-state="TRIAL"]`)
	c.ask(x).Is(c.t, 204, "")
	c.visit("/gateways")
	c.See(mark("row"))
	if got := c.Text(mark("row")); !strings.Contains(got, "PAYOUT") || !strings.HasSuffix(strings.TrimSpace(got), "1") {
		c.t.Errorf("the route on trial is shown as %q", got)
	}
	if cells := webtest.Value[[]string](c.Tab, machineWords); len(cells) > 0 {
		c.t.Errorf("machine words: %v", cells)
	}
	c.visit("/gateways/explain?method=POST&path=" + strings.ReplaceAll(payPath, "?", "%3F"))
	c.See(`[data-testid="decision"] [data-state="ALLOW"]`)
	c.says("would decide")
	for _, value := range []string{"Total", "12", "Order", "7"} {
		c.says(value)
	}
	c.look("gateway-explain")
	c.visit("/gateways")
	c.Click(mark("row") + " td")
	c.Click(mark("route-change"))
	c.choose(mark("field-status"), "ACTIVE")
	c.look("gateway-change")
	c.Click(mark("send"))
	c.See(`[data-state="ACTIVE"]`)
	c.ask(x).Is(c.t, 401, "CHALLENGE_REQUIRED")
}

// readsEvidence shows the evidence of a payment that a device signed, from the entry of its use in the audit.
func (c *guarding) readsEvidence(s *blackbox.Site, p blackbox.Pocket, x string) {
	c.path = "/orders/8/pay?total=12" // the open challenge of the other one is from before the device
	a := c.ask(x)
	a.Status = 200
	f := blackbox.FlowOf(c.t, a)
	path := blackbox.OngoingPath + "?intent=true&deviceId=" + p.ID
	var all []struct{ IntentDigest string }
	c.n.Ok(c.t, "GET", path, nil, p.Sign(c.t, "GET", path, nil, device.Claims{})).Read(c.t, &all)
	p.Answer(c.t, f, "APPROVED", func(of *device.Claims) { of.Intent = all[0].IntentDigest }).Is(c.t, 200, "")
	got := c.n.Result(c.t, f).Is(c.t, 200, "")
	c.ask(x, got.Header.Get("castellan-grant")).Is(c.t, 204, "")

	c.visit("/audit?action=GUARD_PASS")
	c.Click(mark("row") + " td")
	c.Click(mark("evidence"))
	c.See(`[data-testid="verdict"][data-verdict="valid"]`)
	if row := c.Text(mark("evidence-row")); !strings.Contains(row, "Total") || !strings.Contains(row, "12") {
		c.t.Errorf("the evidence shows %q", row)
	}
	c.look("evidence")
	webtest.Value[bool](c.Tab, `((make) => { URL.createObjectURL = (blob) => {
		blob.text().then((text) => { window.saved = text; });
		return make.call(URL, blob); }; return true; })(URL.createObjectURL)`)
	c.Click(mark("evidence-save"))
	c.Until(`typeof window.saved === 'string'`)
	text := webtest.Value[string](c.Tab, `window.saved`)
	file := filepath.Join(c.t.TempDir(), "evidence.json")
	storetest.Must(c.t, os.WriteFile(file, []byte(text), 0o600))
	if out := s.Command("", "intent", "verify", file); out.Code != 0 ||
		!strings.Contains(out.Out, "signed by device "+p.ID) {
		c.t.Errorf("the saved file: exit %d: %s%s", out.Code, out.Out, out.ErrOut)
	}
}

func (c *guarding) links(userID string) {
	const link = "/admin/user/link"
	c.visit("/users/" + userID + "?tab=links")
	c.Click(mark("write-" + link))
	c.Type(mark("field-issuer"), "https://id.example.com")
	c.Type(mark("field-subject"), "f:1:jane")
	c.Click(mark("send"))
	c.See(mark("row"))
	c.says("f:1:jane")
	c.look("user-links")
	c.Click(mark("row") + " td")
	c.Click(mark("bulk-" + link))
	c.Click(mark("bulk-send"))
	c.Until(`!document.querySelector('[data-testid="row"]')`)
}

func (c *guarding) letsServiceStart() {
	const keys = "/admin/service-keys"
	c.visit("/service-keys")
	c.Click(mark("write-" + keys))
	c.Type(mark("field-name"), "shop")
	c.choose(mark("field-actions"), "PAYOUT")
	c.Type(mark("field-callback"), "https://shop.example/in")
	c.look("service-key-actions")
	c.Click(mark("send"))
	c.See(mark("key"))
	key := blackbox.Headers{"service-auth": c.Text(mark("key"))}
	c.Click(mark("stored"))
	c.n.Do(c.t, "GET", "/guard/challenges/none", nil, key).Is(c.t, 404, "RECORD_NOT_FOUND")
	c.See(mark("row"))
	c.says("PAYOUT")
	c.Click(mark("row") + " td")
	c.Click(`[role="dialog"] ` + mark("write-"+keys))
	c.Clear(mark("field-callback"))
	c.Type(mark("field-callback"), "https://shop.example/out")
	c.Click(mark("send"))
	c.Until(noDialog)
	if got := string(c.n.Ok(c.t, "GET", keys, nil, blackbox.Headers{"x-auth": c.token}).Body); !strings.
		Contains(got, `"callback":"https://shop.example/out"`) {
		c.t.Errorf("the keys are %s", got)
	}
}
