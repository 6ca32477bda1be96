package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// A security officer makes a rule of the firewall on trial after seeing what it would
// have done, explains a refusal by its link, grants a permission in the matrix and sees
// it in the log, raises a policy, and finds all of it in the audit.
func TestConsoleSecurity(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, demo := s.Seeded("admin"), s.Seeded("user")
		auth, _ := n.Session(t, boss)
		admin := blackbox.Headers{"x-auth": auth}
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", map[string]any{"actionCode": "LOGIN", "name": "One of two",
			"expireAt": 0, "required": 1, "methods": [][]string{{"SMS"}, {"MAIL"}}}, admin)
		n.Ok(t, "POST", "/admin/roles", map[string]any{"code": "auditor", "name": "Auditor"}, admin)
		wrong := demo
		wrong.Password = "not the password"
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(wrong), nil).Is(t, 401, "INVALID_CREDENTIALS")
		mine, _ := n.Session(t, demo)
		n.Do(t, "GET", "/admin/audit", nil, blackbox.Headers{"x-auth": mine}).Is(t, 403, "FORBIDDEN")
		policy := map[string]any{"actionCode": "LOGIN", "name": "Device", "expireAt": 0, "required": 1,
			"methods": [][]string{{"PUSH"}}}
		tried := n.Ok(t, "POST", "/admin/system/mfa/rehearse", policy, admin)
		for _, want := range []string{`"considered":2,"changed":2,"stopped":2,"users":2,"truncated":false`,
			`"action":"LOGIN"`} {
			if !strings.Contains(string(tried.Body), want) {
				t.Errorf("a policy of devices, which nobody has: %s; want %s", tried.Body, want)
			}
		}
		policy["required"] = 2
		n.Do(t, "POST", "/admin/system/mfa/rehearse", policy, admin).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", "/admin/system/mfa/rehearse", policy, blackbox.Headers{"x-auth": mine}).Is(t, 403, "FORBIDDEN")

		tab := webtest.Browser(t)
		c := &officer{tab, t}
		consoleLogin(t, tab, n, boss, "/firewall")
		c.makesRule()
		c.explainsRefusal()
		c.grants()
		c.raisesPolicy()
		c.findsAll()
		c.looksAround()
	})
}

// officer works with the screens of the area security.
type officer struct {
	*webtest.Tab
	t *testing.T
}

func (c *officer) shot(name string) {
	c.t.Helper()
	c.Screenshot(c.t, filepath.Join(c.t.ArtifactDir(), "console", name+".png"))
	barriers(c.t, c.Tab, name)
}

func mark(name string) string { return fmt.Sprintf("[data-testid=%q]", name) }

func (c *officer) shows(text string) {
	c.t.Helper()
	c.Until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

func (c *officer) makesRule() {
	c.t.Helper()
	c.See(`h1`)
	c.Click(mark("write-/admin/system/waf/rules"))
	c.Type(mark("field-targetEntities"), "127.0.0.1") // taken when the field is left
	c.Type(mark("field-targetResources"), "POST /auth/login")
	c.Type(mark("field-label"), "trial-login")
	// The wrong password, and the logins of both.
	c.Until(`parseInt(document.querySelector('[data-stopped]')?.dataset.stopped ?? '0', 10) >= 3`)
	c.shot("firewall-rehearsed")
	c.Click(mark("send"))
	c.See(mark("row"))
	c.shows("On trial")
	c.shot("firewall")
	c.Click(mark("row") + " td")
	c.See(mark("rule-trial"))
	c.shows("curl")
	c.shot("firewall-rule")
	c.Click(mark("rule-status"))
	c.shows("INACTIVE")
}

func (c *officer) explainsRefusal() {
	c.t.Helper()
	c.Click(mark("nav-/audit"))
	c.See(mark("chain"))
	c.Type(mark("filter-action"), "DENIED\r")
	c.Until(`location.search.includes('DENIED') && document.querySelectorAll('[data-testid="row"]').length === 2`)
	c.Click(mark("row") + " td")
	c.See(mark("why-firewall"))
	c.shot("audit-entry")
	c.Click(mark("why-firewall"))
	c.See(mark("decision"))
	c.shows("ALLOW") // no rule refused it: the permission was missing
	c.See(mark("verdict"))
	c.shot("firewall-explain")
}

func (c *officer) grants() {
	c.t.Helper()
	c.Click(mark("nav-/roles"))
	c.See(mark("matrix"))
	c.Type(mark("matrix-find"), "GET /admin/audit")
	cell := mark("cell-auditor-GET /admin/audit")
	c.See(cell)
	c.Choose(cell, "ALLOW")
	c.See(mark("diff"))
	c.shot("roles-change")
	c.Click(mark("matrix-send"))
	c.Until(fmt.Sprintf("document.querySelector('%s')?.value === 'ALLOW'", cell))
	c.shot("roles")
	c.Click(mark("tab-log"))
	c.See(mark("row"))
	c.Until(`/auditor[^]*GET .admin.audit[^]*ALLOW/.test(document.querySelector('[data-testid="row"]').innerText)`)
	c.shot("roles-log")
	for _, tab := range []string{"members", "resources", "types"} {
		c.Click(mark("tab-" + tab))
		c.See(mark("row"))
		c.shot("roles-" + tab)
	}
}

func (c *officer) raisesPolicy() {
	c.t.Helper()
	c.Click(mark("nav-/mfa"))
	c.See(mark("row"))
	c.shot("mfa")
	c.Click(mark("row") + " td")
	c.Click(mark("policy-change"))
	c.Type(mark("field-required"), "2")
	c.See(mark("diff"))
	c.Until(`/Of [1-9]\d* challenges [1-9]/.test(document.querySelector('[data-testid="rehearsal"]')?.innerText)`)
	c.shot("mfa-rehearsed")
	c.Click(mark("send"))
	c.Until(`document.querySelector('[data-testid="row"]')?.innerText.includes('2 / ')`)
	for _, tab := range []string{"actions", "methods"} {
		c.Click(mark("tab-" + tab))
		c.See(mark("row"))
		c.shot("mfa-" + tab)
	}
}

func (c *officer) findsAll() {
	c.t.Helper()
	c.Click(mark("nav-/audit"))
	for _, action := range []string{"MFA_POLICY_UPDATE", "PERMISSION_SET", "FIREWALL_RULE_UPDATE", "FIREWALL_RULE_ADD"} {
		c.shows(action)
	}
	c.Until(`document.querySelector('[data-testid="chain"]')?.dataset.holds === 'true'`)
	c.shot("audit")
	// A failed login leads to the policies.
	c.Type(mark("filter-action"), "LOGIN\r")
	c.Until(`[...document.querySelectorAll('[data-testid="row"]')].every((r) => r.innerText.includes('LOGIN'))`)
	c.Click(mark("row") + " td")
	c.Click(mark("why-mfa"))
	c.See(mark("decision"))
	c.See(mark("verdict"))
	c.shot("mfa-explain")
}

// looksAround sees each screen on a phone, in Arabic and in the dark.
func (c *officer) looksAround() {
	c.t.Helper()
	c.Click(`[aria-label="Language"]`)
	c.Click(mark("language-ar"))
	c.Until(`document.documentElement.dir === 'rtl'`)
	c.Click(mark("theme"))
	c.View(webtest.Phone)
	row := func(path string) string { return fmt.Sprintf(`[data-path=%q] [data-testid="row"]`, path) }
	for _, screen := range []struct{ name, path, see string }{
		{"firewall", "/firewall", row("/admin/system/waf/rules")}, {"roles", "/roles", mark("matrix") + " tbody tr"},
		{"firewall-explain", "/firewall/explain?resource=POST+/auth/login", mark("decision")},
		{"mfa", "/mfa", row("/admin/system/mfa/policies")},
		{"mfa-explain", "/mfa/explain?actionCode=LOGIN", mark("decision")}, {"audit", "/audit", row("/admin/audit")},
	} {
		webtest.Value[bool](c.Tab, "(() => { history.pushState({}, '', '/console"+screen.path+"'); return true; })()")
		c.See(screen.see)
		c.Until(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
		c.shot("phone-" + screen.name)
	}
}
