package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// supportCalls are the endpoints that the support may call.
var supportCalls = []string{"GET /admin/list-users", "GET /admin/login-history", "GET /admin/login-history-v2",
	"GET /admin/get-email-change-history", "GET /admin/audit", "POST /admin/user/update-fullname"}

// A support agent finds a user by a name with the other letters i, and corrects the name after a challenge.
// The user's timeline and the audit show the change. Forbidden actions are not on the screen. A list of the
// timeline that cannot be read is named in it while the others are shown. Then an administrator walks through
// home, the other lists of accounts and the companies, adds a user of a company, and sees the second factors of a user.
func TestConsoleUserFile(t *testing.T) {
	blackbox.OnOne(t, "postgres", func(t *testing.T, s *blackbox.Site) {
		got := s.Command("", "corporate", "add", "Işık Ticaret A.Ş.", "1234567890", "--status", "PENDING")
		storetest.Equal(t, got.Code, 0, "exit", got.ErrOut)
		n := s.Start("MFA_GUARDED=POST /admin/user/update-fullname=RENAME")
		boss, agent, who := s.Seeded("admin"), s.AddUser("user"), s.AddUser("user")
		head := blackbox.Admin(t, s, n)
		n.Ok(t, "POST", "/admin/system/mfa/actions", blackbox.NewAction("RENAME"), head)
		blackbox.Policy(t, n, head, "RENAME", 1, `[["MAIL"]]`, "")
		blackbox.Role(t, n, head, agent, "support", supportCalls...)
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/admin/user/update-fullname",
			`{"userId":"`+who.ID+`","name":"Işıl","surname":"Yilmaz"}`, head))
		n.Complete(t, f, f.Method(t, "MAIL"), n.Code(t, boss, "MAIL")).Is(t, 200, "")
		for i := range 30 { // more than a page of the story, with a login in the middle
			for _, method := range []string{"POST", "DELETE"} {
				n.Ok(t, method, "/admin/user-roles", `{"userId":"`+who.ID+`","roleCode":"support"}`, head)
			}
			if i == 15 {
				n.Session(t, who)
				n.Do(t, "POST", "/auth/login", `{"email":"`+who.Mail+`","password":"not this one"}`, nil).
					Is(t, 401, "INVALID_CREDENTIALS")
			}
		}
		tab := webtest.Browser(t)
		d := desk{viewer{tab, t}, n}
		blackbox.Rule(t, n, head, "wall", "blacklist", map[string]any{"targetEntities": []string{"127.0.0.1"},
			"targetResources": []string{"GET /admin/login-history"}})
		blackbox.Status(t, n, "wall", "INACTIVE", head)
		d.corrects(agent, who, s.Count("audit WHERE user_id = $1 AND action <> 'LOGIN'", who.ID), func(to string) {
			blackbox.Status(t, n, "wall", to, head)
		})
		// A revoked permission leaves the menu once a request is refused.
		n.Ok(t, "DELETE", "/admin/user-roles", `{"userId":"`+agent.ID+`","roleCode":"support"}`, head)
		goTo(tab, "/audit")
		tab.Until(`document.querySelector('[data-testid="nav-/me"]') &&
			!document.querySelector('[data-testid="nav-/audit"]')`)
		fromChip(tab, "logout")
		tab.See(`[data-testid="login"]`)
		d.walks(boss)
		d.looksAtFactors(who)
		reason := strings.Repeat("untraceable", 6)
		n.Ok(t, "POST", "/admin/user/close-user-authentication", map[string]any{"userId": who.ID, "status": "passive",
			"closedUserReason": reason}, head)
		d.looksInArabic(who, reason)
	})
}

// desk is a browser at the console.
type desk struct {
	viewer
	n *blackbox.Node
}

// rows waits until so many rows, or more, are listed, and one of them has the text.
func (d desk) rows(least int, text string) {
	d.t.Helper()
	d.Tab.Until(fmt.Sprintf(`(() => { const rows = [...document.querySelectorAll('[data-testid="row"]')];
		return rows.length >= %d && rows.some((row) => row.innerText.includes(%q)); })()`, least, text))
}

// corrects is the work of the support. The timeline has so many entries of the audit, a login and a refused
// one. The wall blocks the list of logins while it is ACTIVE.
func (d desk) corrects(agent, who blackbox.Account, entries int, wall func(status string)) {
	t, tab := d.t, d.Tab
	consoleLogin(t, tab, d.n, agent, "/users?fullName="+url.QueryEscape("IŞIL yılmaz"))
	d.rows(1, who.Mail)
	tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	d.look("users")
	tab.Click(`[data-testid="row"]`)
	tab.See(`[data-testid="event"]`)
	d.look("story")
	tab.Click(`[data-testid="older"]`)
	tab.Until(fmt.Sprintf(`(() => { const all = [...document.querySelectorAll('[data-testid="event"]')];
		const at = all.map((one) => one.querySelector('time').dateTime);
		const login = all.findIndex((one) => one.dataset.kind === 'login');
		return all.length === %d && login > 10 && login < all.length - 10 &&
			at.every((one, n) => n === 0 || at[n - 1] >= one); })()`, entries+2))
	tab.Click(`[data-testid="event"][data-kind="login"] button`)
	tab.See(`[data-testid="refused"]`)
	tab.Until(`document.querySelector('[data-testid="refused"]').innerText.includes('Wrong password, attempt 1 of')`)
	d.look("refused")
	tab.Press("\x1b")
	tab.Until(`!document.querySelector('[role="dialog"]')`)
	const dead = `['write-/admin/user/update-email', 'tab-documents', 'tab-roles', 'nav-/corporate', 'factors', 'sessions',
		'go-/users/registered'].filter((id) => document.querySelector('[data-testid="' + id + '"]')).length`
	storetest.Equal(t, webtest.Value[int](tab, dead), 0, "ways to endpoints that the role may not call")
	tab.Click(`[data-testid="write-/admin/user/update-fullname"]`)
	tab.Type(`[data-testid="field-surname"]`, "Yılmaz")
	d.look("correct")
	wall("ACTIVE")
	had := d.n.Letters(t, agent.Mail)
	tab.Click(`[data-testid="send"]`)
	tab.See(`[data-testid="method-MAIL"]`)
	blackbox.Until(t, blackbox.Within(10), "the code", func() bool { return len(d.n.Letters(t, agent.Mail)) > len(had) })
	tab.Type(`[data-testid="code-MAIL"] input`, d.n.Code(t, agent, "MAIL"))
	tab.Until(`document.querySelector('h1').innerText === 'Işıl Yılmaz'`)
	tab.Until(`[...document.querySelectorAll('[data-testid="event"]')]
		.filter((one) => one.innerText.includes('Name changed')).length === 2`)
	tab.See(`[data-testid="gap"][data-kind="login"] [data-testid="problem"]`)
	d.look("gap")
	wall("INACTIVE")
	tab.Click(`[data-testid="again"]`)
	tab.Until(`!document.querySelector('[data-testid="gap"]')`)
	tab.See(`[data-testid="event"][data-kind="login"]`)
	tab.Click(`[data-testid="tab-audit"]`)
	d.rows(1, "Name changed")
	d.look("audit")
}

func (d desk) walks(boss blackbox.Account) {
	t, tab := d.t, d.Tab
	consoleLogin(t, tab, d.n, boss, "")
	tab.Until(`document.querySelector('[data-testid="waits-home.corporate"]')?.innerText.includes('1')`)
	tab.See(`[data-testid="chart"]`)
	d.look("home")
	goTo(tab, "/users")
	d.rows(4, boss.Mail)
	tab.Click(`thead input`)
	tab.Until(`document.querySelector('thead input').checked && !document.querySelector('thead input').indeterminate`)
	tab.Click(`[data-testid="bulk-/admin/user/close-user-authentication"]`)
	tab.See(`[data-testid="bulk-status"]`)
	tab.Until(`document.querySelector('[data-testid="bulk-send"]').disabled`) // until a value is chosen
	d.look("bulk")
	tab.Press("\x1b")
	tab.Until(`!document.querySelector('[role="dialog"]')`)
	tab.Click(`thead input`)
	for _, find := range [][2]string{{"email", strings.Replace(strings.ToUpper(boss.Mail), "I", "İ", 1)},
		{"phoneNumber", "0" + boss.Phone[:3] + " " + boss.Phone[3:]}, {"phoneNumber", boss.Phone}} {
		filterBy(tab, find[0], find[1]) // as people in Turkey write them
		tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
		d.rows(1, boss.Mail)
		tab.Click(`[data-testid="clear"]`)
		d.rows(4, boss.Mail)
	}
	for _, text := range []string{"Boss <" + boss.Mail + ">", boss.Phone} { // the form decides the filter
		tab.Type(`[data-testid="find"]`, text+"\r")
		tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
		d.rows(1, boss.Mail)
		tab.Click(`[data-testid="clear"]`)
		d.rows(4, boss.Mail)
	}
	tab.Click(`header button:has(kbd)`)
	tab.Type(`input[aria-label="Search"]`, "yılmaz")
	tab.Click(`.mantine-Spotlight-action`)
	tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	d.rows(1, "Işıl Yılmaz")
	tab.PressOn(`[data-testid="go-/users/registered"]`, "\r") // Enter is a key of the list, and of the link
	tab.See(`[data-testid="chart"]`)
	d.rows(4, "Işıl Yılmaz")
	d.look("registered")
	tab.Click(`[data-testid="go-/users/active"]`)
	d.rows(3, "Işıl Yılmaz")
	tab.Click(`[data-testid="go-/users/logins"]`)
	filterBy(tab, "ipaddress", "127.0.0.1\r")
	d.rows(3, "127.0.0.1")
	d.look("logins")
	goTo(tab, "/corporate")
	d.rows(1, "Işık Ticaret A.Ş.")
	d.look("applications")
	tab.Click(`[data-testid="go-/corporate/users"]`)
	tab.Click(`[data-testid="write-/admin/insert-corporate-user"]`)
	for _, field := range [][2]string{{"corporateUserId", "acme"}, {"role", "owner"}, {"phoneNumber", "5321234567"},
		{"email", "ann@acme.test"}, {"countryCode", "+90"}} {
		tab.Type(`[data-testid="field-`+field[0]+`"]`, field[1])
	}
	tab.Click(`[role="option"][value="90"]`)
	d.look("insert")
	tab.Click(`[data-testid="send"]`)
	d.rows(1, "ann@acme.test")
	tab.Click(`[data-testid="row"]`)
	tab.Click(`[data-testid="write-/admin/update-corporate-user"]`)
	tab.Type(`[data-testid="field-status"]`, "passive")
	tab.Click(`[data-testid="send"]`)
	d.rows(1, "Passive")
	d.look("companies")
	goTo(tab, "/audit")
	d.rows(1, "Corporate user added")
}

// looksAtFactors shows an account with codes by SMS and mail only, and then with an authenticator and a device.
func (d desk) looksAtFactors(who blackbox.Account) {
	t, tab := d.t, d.Tab
	goTo(tab, "/users")
	filterBy(tab, "email", who.Mail+"\r")
	tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	tab.Click(`[data-testid="row"]`)
	shows := func(factors string) {
		t.Helper()
		tab.Until(fmt.Sprintf(`document.querySelector('[data-testid="factors"]')?.innerText === %q`, factors))
	}
	shows("No authenticator, device or passkey")
	d.look("head-no-factor")
	session, _ := d.n.Session(t, who)
	blackbox.Enroll(t, d.n, who, session, device.ES256, "")
	blackbox.Enrolled(t, d.n, who, blackbox.Headers{"x-auth": session})
	tab.Reload()
	shows("Authenticator app, not used yet · 1 device")
	tab.Until(`document.querySelector('[data-testid="sessions"]').innerText === '2 active sessions'`)
	d.look("head")
	tab.View(webtest.Phone)
	tab.Until(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	d.look("head-phone")
	tab.View(webtest.Desktop)
}

// looksInArabic shows a user's file on a phone, in the dark, from right to left. The timeline shows the reason
// for closing the account, one long word.
func (d desk) looksInArabic(who blackbox.Account, reason string) {
	tab := d.Tab
	fromChip(tab, "language-ar")
	tab.Until(`document.documentElement.dir === 'rtl'`)
	goTo(tab, "/users")
	filterBy(tab, "email", who.Mail+"\r")
	tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	tab.Click(`[data-testid="row"]`)
	tab.See(`[data-testid="event"][data-kind="login"]`)
	tab.Until(fmt.Sprintf(`document.querySelector('[data-testid="story"]').innerText.includes(%q)`, reason))
	fromChip(tab, "theme")
	tab.View(webtest.Phone)
	tab.Until(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
	d.look("story-arabic")
}
