package console

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// A security officer puts a firewall rule on trial after seeing its effect on past requests, and explains a
// refusal by its link. The officer grants a permission in the matrix and sees it in the log, raises a policy,
// and finds all of it in the audit.
func TestConsoleSecurity(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := s.Start("MFA_GUARDED=PATCH /admin/system/waf/rules=RULE_CHANGE")
		boss, demo := s.Seeded("admin"), s.Seeded("user")
		admin := n.Auth(t, boss)
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", map[string]any{"actionCode": "LOGIN", "name": "One of two",
			"expireAt": 0, "required": 1, "methods": [][]string{{"SMS"}, {"MAIL"}}}, admin)
		n.Ok(t, "POST", "/admin/system/mfa/actions", blackbox.NewAction("RULE_CHANGE"), admin)
		blackbox.Policy(t, n, admin, "RULE_CHANGE", 1, `[["MAIL"]]`, "")
		n.Ok(t, "POST", "/admin/roles", map[string]any{"code": "auditor", "name": "Auditor"}, admin)
		page := n.Ok(t, "POST", "/resource/resource-type",
			`{"code":"page","name":"Page","status":1,"resourceContext":"UI"}`, admin).At(t, "id")
		n.Ok(t, "POST", "/resource/resource", fmt.Sprintf(`{"code":"/desk","name":"Desk","status":0,"resourceTypeId":%s,`+
			`"resourceContext":"UI"}`, page), admin)
		wrong := demo
		wrong.Password = "not the password"
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(wrong), nil).Is(t, 401, "INVALID_CREDENTIALS")
		mine := n.Auth(t, demo)
		n.Do(t, "GET", "/admin/audit", nil, mine).Is(t, 403, "FORBIDDEN")
		policy := map[string]any{"actionCode": "LOGIN", "name": "Device", "expireAt": 0, "required": 1,
			"methods": [][]string{{"PUSH"}}}
		tried := n.Ok(t, "POST", "/admin/system/mfa/rehearse", policy, admin)
		for _, want := range []string{`"considered":2,"changed":2,"stopped":2,"users":2,"truncated":false`,
			`"action":"LOGIN"`} {
			storetest.Contains(t, string(tried.Body), want, "a policy of devices without any device")
		}
		policy["required"] = 2
		n.Do(t, "POST", "/admin/system/mfa/rehearse", policy, admin).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", "/admin/system/mfa/rehearse", policy, mine).Is(t, 403, "FORBIDDEN")

		tab := webtest.Browser(t)
		c := &officer{viewer{tab, t}, n, boss}
		consoleLogin(t, tab, n, boss, "/firewall")
		c.makesRule()
		c.limitsService(admin)
		c.explainsRefusal()
		c.pastes()
		c.jumps()
		c.grants()
		c.keepsPassive(admin)
		c.raisesPolicy()
		c.findsAll()
		c.looksAround()
	})
}

// officer works with the screens of the area security.
type officer struct {
	viewer
	n    *blackbox.Node
	boss blackbox.Account
}

func (c *officer) makesRule() {
	c.See(`h1`)
	c.Click(mark("write-/admin/system/waf/rules"))
	c.Type(mark("field-targetEntities"), "127.0.0.1") // taken when the field loses the focus
	c.Type(mark("field-targetResources"), "POST /auth/login")
	c.Type(mark("field-label"), "trial-login")
	// The wrong password, and the logins of both.
	c.Until(`parseInt(document.querySelector('[data-stopped]')?.dataset.stopped ?? '0', 10) >= 3`)
	c.look("firewall-rehearsed")
	c.Click(mark("send"))
	c.See(mark("row"))
	c.says("Trial")
	c.look("firewall")
	c.Click(mark("row") + " td")
	c.See(mark("rule-trial"))
	c.Click(mark("raw") + " summary")
	c.says("curl")
	c.look("firewall-rule")
	// The change requires a challenge, which shows its reason, beside this page.
	had := len(c.n.Letters(c.t, c.boss.Mail))
	c.Click(mark("rule-status"))
	c.See(mark("method-MAIL"))
	c.Until(`(() => { const why = document.querySelector('[data-testid="why-mfa"]');
		const asked = new URL(why?.href ?? location.href).searchParams;
		return asked.get('actionCode') === 'RULE_CHANGE' && asked.get('ip') === '127.0.0.1' &&
			asked.get('userId').length === 26 && why.target === '_blank'; })()`)
	c.look("firewall-challenge")
	blackbox.Until(c.t, blackbox.Within(10), "the code", func() bool { return len(c.n.Letters(c.t, c.boss.Mail)) > had })
	c.Type(mark("code-MAIL")+" input", c.n.Code(c.t, c.boss, "MAIL"))
	c.See(`[data-state="INACTIVE"]`)
}

// limitsService adds the limit of another service (D-WAF-21), opens its form again, and explains it.
func (c *officer) limitsService(admin blackbox.Headers) {
	c.goes("/firewall")
	c.Click(mark("write-/admin/system/waf/rules"))
	c.Click(mark("field-type"))
	c.Click(`[role="option"][value="service_limit"]`)
	c.Type(mark("field-appId"), "shop")
	c.Click(mark("field-targetEntityType"))
	c.Click(`[role="option"][value="USER_ID"]`)
	c.Click(mark("field-targetAllEntities"))
	for field, text := range map[string]string{"label": "shop-orders", "limit": "100", "period": "1",
		"targetResources": "orders"} {
		c.Type(mark("field-"+field), text)
	}
	c.look("firewall-service-limit")
	c.Click(mark("send"))
	c.says("shop: orders")
	got := c.n.Ok(c.t, "GET", "/admin/system/waf/rules?appId=shop", nil, admin)
	for _, want := range []string{`"type":"rate_limit"`, `"limit":100`, `"period":60000`, `"targetEntityType":"USER_ID"`,
		`"targetResources":["LIMIT orders"]`} {
		storetest.Contains(c.t, string(got.Body), want, "the limit of a service")
	}
	c.Click(mark("row") + ":last-child td")
	c.Click(mark("rule-change"))
	c.Until(`document.querySelector('[data-testid="field-targetResources"]')?.closest('.mantine-TagsInput-root')
		?.innerText.includes('orders')`)
	c.goes("/firewall/explain")
	for field, text := range map[string]string{"resource": "LIMIT orders", "service": "shop", "userId": "order 7"} {
		c.Type(mark("ask-"+field), text)
	}
	c.Click(mark("ask"))
	c.says("The rule is on trial")
	c.look("firewall-service-explain")
}

// rows waits until so many rows with the text are listed at an address.
func (c *officer) rows(at string, want int) {
	c.t.Helper()
	c.Until(fmt.Sprintf(`location.href.includes(%q) && !document.querySelector('main [aria-busy="true"]') &&
		document.querySelectorAll('[data-testid="row"]').length === %d`, at, want))
}

// explains opens the first entry of the audit, and by its link the explanation.
func (c *officer) explains(by, name string) {
	c.t.Helper()
	c.Click(mark("row") + " td")
	c.See(mark("why-" + by))
	c.look(name + "-entry")
	c.Click(mark("why-" + by))
	c.See(mark("decision"))
	c.See(mark("verdict"))
	c.look(name + "-explain")
}

func (c *officer) explainsRefusal() {
	goTo(c.Tab, "/audit")
	c.See(mark("chain"))
	filterBy(c.Tab, "action", "DENIED\r")
	c.rows("DENIED", 2)
	c.Click(mark("row") + " td")
	c.Click(mark("to-audit.allOfRequest")) // the other entries of the same request: none
	c.rows("requestId=", 1)
	c.explains("firewall", "firewall")
	c.See(`[data-state="ALLOW"]`) // no rule refused it: the permission was missing
	c.See(mark("elsewhere"))
}

// pastes enters values in the palette; each opens its page.
func (c *officer) pastes() {
	request := c.n.Do(c.t, "GET", "/admin/roles", nil, nil).Header.Get("X-Request-Id")
	for _, pasted := range []struct{ text, choice, at string }{
		{request, "request", "/audit?requestId=" + request}, {request, "target", "/audit?target=" + request},
		{"127.0.0.1", "ip", "/audit?ip=127.0.0.1"}, {"2001:db8::7", "logins", "/users/logins?ipaddress=2001"},
		{"0x" + strings.Repeat("9f", 20), "address.withdrawal", "/withdrawals?address=0x9f9f"},
		{strings.Repeat("9f", 32), "txId.deposit", "/transactions?txId=9f9f"},
	} {
		c.Click(mark("palette"))
		c.Type(`input[aria-label="Search"]`, pasted.text)
		c.Click(mark("go-palette." + pasted.choice))
		c.Until(fmt.Sprintf(`location.href.includes(%q) && !document.querySelector('main [aria-busy="true"]') &&
			!document.querySelector('[role="dialog"]')`, pasted.at))
		if pasted.choice == "ip" {
			c.look("audit-ip")
		}
	}
}

// jumps finds a person by a pasted address, opens the account, and uses the keys of every screen.
func (c *officer) jumps() {
	person := `[data-testid^="person-"]`
	c.Click(mark("palette"))
	c.Type(`input[aria-label="Search"]`, "Boss <"+c.boss.Mail+">")
	c.See(person)
	c.See(mark("act-palette.act.adjustOf"))
	c.look("palette")
	c.Click(person)
	c.Until(`/users\/[0-9A-Z]{26}$/.test(location.pathname) && !document.querySelector("[role=dialog]")`)
	c.Until(`document.querySelector(".customer h1")?.innerText.includes("Demo Admin")`)
	c.Press("gh")
	c.Until(`location.pathname.endsWith('/console/') || location.pathname.endsWith('/console')`)
	c.Click(mark("palette"))
	c.See(person) // a recent customer
	c.Press("\x1b")
	c.Until(`!document.querySelector('[role="dialog"]')`)
	c.Press("?")
	c.See(mark("keys"))
	c.look("keys")
	c.Press("\x1b")
	c.Until(`!document.querySelector('[role="dialog"]')`)
}

func (c *officer) grants() {
	goTo(c.Tab, "/roles")
	c.See(mark("matrix"))
	c.Type(mark("matrix-find"), "GET /admin/audit")
	cell := mark("cell-auditor-GET /admin/audit")
	c.See(cell)
	c.Choose(cell, "ALLOW")
	c.See(mark("diff"))
	c.look("roles-change")
	c.Click(mark("matrix-send"))
	c.Until(fmt.Sprintf("document.querySelector('%s')?.value === 'ALLOW'", cell))
	c.look("roles")
	c.Click(mark("tab-log"))
	c.See(mark("row"))
	c.Until(`/auditor[^]*GET .admin.audit[^]*ALLOW/i.test(document.querySelector('[data-testid="row"]').innerText)`)
	c.look("roles-log")
	for _, tab := range []string{"members", "resources", "types"} {
		c.Click(mark("tab-" + tab))
		c.See(mark("row"))
		c.look("roles-" + tab)
	}
}

func (c *officer) raisesPolicy() {
	goTo(c.Tab, "/mfa")
	c.See(mark("row"))
	c.look("mfa")
	c.Click(mark("row") + " td")
	c.Click(mark("policy-change"))
	c.Type(mark("field-required"), "2")
	c.See(mark("diff"))
	c.Until(`/[1-9]\d* of [1-9]\d* challenges/.test(document.querySelector('[data-testid="rehearsal"]')?.innerText)`)
	c.look("mfa-rehearsed")
	c.Click(mark("send"))
	c.Until(`document.querySelector('[data-testid="row"]')?.innerText.includes('2 of ')`)
	for _, tab := range []string{"actions", "methods"} {
		c.Click(mark("tab-" + tab))
		c.See(mark("row"))
		c.look("mfa-" + tab)
	}
}

func (c *officer) findsAll() {
	goTo(c.Tab, "/audit")
	for _, action := range []string{"MFA_POLICY_UPDATE", "PERMISSION_SET", "FIREWALL_RULE_UPDATE", "FIREWALL_RULE_ADD"} {
		c.See(acted(action))
	}
	c.Until(`document.querySelector('[data-testid="chain"]')?.dataset.holds === 'true'`)
	c.look("audit")
	// A failed login links to the policies.
	filterBy(c.Tab, "action", "LOGIN\r")
	c.Until(`[...document.querySelectorAll('[data-testid="row"]')].every((r) => r.querySelector('[data-action="LOGIN"]'))`)
	c.explains("mfa", "mfa")
}

// keepsPassive renames a passive resource, which stays passive.
func (c *officer) keepsPassive(admin blackbox.Headers) {
	c.goes("/roles?tab=resources&resourceContext=UI")
	c.rows("resourceContext=UI", 1)
	c.See(`[data-state="INACTIVE"]`)
	c.Click(mark("row") + " td:nth-child(2)") // the first has the checkbox
	c.Click(mark("resource-change"))
	c.Type(mark("field-name"), "Front desk")
	c.Click(mark("send"))
	c.says("Front desk")
	got := c.n.Ok(c.t, "GET", "/resource/resources?resourceContext=UI&stored=true", nil, admin)
	if !strings.Contains(string(got.Body), `"resourceName":"Front desk"`) ||
		!strings.Contains(string(got.Body), `"status":0,"resourceContext":"UI"`) {
		c.t.Errorf("after the change of the name: %s", got.Body)
	}
}

// goes opens a page of the console by a link.
func (c *officer) goes(path string) {
	c.t.Helper()
	webtest.Value[bool](c.Tab, "(() => { history.pushState({}, '', '/console"+path+"'); return true; })()")
}

// looksAround shows each screen on a phone, in Arabic and in the dark.
func (c *officer) looksAround() {
	fromChip(c.Tab, "language-ar")
	c.Until(`document.documentElement.dir === 'rtl'`)
	fromChip(c.Tab, "theme")
	c.View(webtest.Phone)
	row := func(path string) string { return fmt.Sprintf(`[data-path=%q] [data-testid="row"]`, path) }
	for _, screen := range []struct{ name, path, see string }{
		{"firewall", "/firewall", row("/admin/system/waf/rules")}, {"roles", "/roles", mark("matrix") + " tbody tr"},
		{"firewall-explain", "/firewall/explain?resource=POST+/auth/login", mark("decision")},
		{"mfa", "/mfa", row("/admin/system/mfa/policies")},
		{"mfa-explain", "/mfa/explain?actionCode=LOGIN", mark("decision")}, {"audit", "/audit", row("/admin/audit")},
	} {
		c.goes(screen.path)
		c.See(screen.see)
		c.Until(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
		c.look("phone-" + screen.name)
	}
}
