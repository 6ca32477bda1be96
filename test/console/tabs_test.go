package console

import (
	"fmt"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// The tabs share the token, whose only copy on the disk is encrypted. A login, a logout, the lock after a quarter of
// an hour and the end of a session apply to all of them. Typed text stays below the login, for the same user
// only. Screens without permission leave the menu. The pages are the same on both databases.
func TestConsoleTabsShareSession(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	boss, demo := s.Seeded("admin"), s.Seeded("user")
	head := n.Auth(t, boss)
	agent := s.AddUser("user")
	blackbox.Role(t, n, head, agent, "support", supportCalls...)

	one := webtest.Browser(t)
	one.Open(n.URL + "/console/roles")
	listens(one)
	p := &pair{t: t, n: n, one: one}
	p.logsIn(one, boss)
	one.Until(drawn)
	p.two = one.Another()
	p.two.Open(n.URL + "/console/me")
	p.two.See(mark("row")) // no login is required
	p.types("Night shift")
	p.locksTogether(boss)
	p.survivesItsSession(boss, head)
	p.survivesTheNetwork()
	s.Has(1, "role WHERE code = 'night'")
	p.keepsNothing()
	p.losesAGrant(agent, head)
	p.changesHands(boss, demo)
	p.leavesTogether(demo)
}

// pair is two tabs of one browser.
type pair struct {
	t        *testing.T
	n        *blackbox.Node
	one, two *webtest.Tab
	secrets  []string // tokens and keys of sessions that the first tab has seen
}

// listens records the requests of the page, their keys, and its secrets.
func listens(tab *webtest.Tab) {
	webtest.Value[bool](tab, `(() => {
		const real = window.fetch;
		window.heard = { asked: [], keys: [], secrets: [] };
		window.fetch = async (to, init) => {
			heard.asked.push((init?.method ?? 'GET') + ' ' + new URL(to.url ?? to).pathname);
			heard.keys.push(init?.headers?.['idempotency-key'] ?? '');
			const answer = await real(to, init);
			const token = answer.headers.get('x-auth');
			const key = /"sessionKey":"([^"]+)"/.exec(await answer.clone().text())?.[1];
			heard.secrets.push(...[token, key].filter(Boolean));
			return answer;
		};
		return true;
	})()`)
}

// logsIn fills in the login that a tab shows, with a double click on its button.
func (p *pair) logsIn(tab *webtest.Tab, who blackbox.Account) {
	p.t.Helper()
	tab.Type(mark("email"), who.Mail)
	tab.Type(mark("password"), who.Password)
	tab.See(mark("login"))
	webtest.Value[bool](tab, `(() => { const b = document.querySelector('[data-testid="login"]');
		b.click(); b.click(); return true; })()`)
	tab.See(mark("method-MAIL"))
	tab.Type(`[data-testid="code-MAIL"] input`, p.n.Code(p.t, who, "MAIL"))
	tab.Until(`!document.querySelector('[data-testid="challenge"]') && document.querySelector('[data-testid="chip"]')`)
}

const theName = `[role="dialog"] [data-testid="field-name"]`

// types opens a form in the first tab and begins to fill it in.
func (p *pair) types(name string) {
	p.t.Helper()
	p.one.Front().Click(mark("write-/admin/roles"))
	p.one.Type(`[role="dialog"] [data-testid="field-code"]`, "night")
	p.one.Type(theName, name)
}

// still checks that the typed text is visible.
func (p *pair) still(name string) {
	p.t.Helper()
	p.one.Front().See(theName)
	p.one.Until(`!document.querySelector('[data-testid="lock"]')`)
	storetest.Equal(p.t, webtest.Value[string](p.one, `document.querySelector('`+theName+`').value`), name,
		"what was typed")
}

// later advances the clocks of both tabs by so many minutes.
func (p *pair) later(minutes int) {
	p.t.Helper()
	for _, tab := range []*webtest.Tab{p.one, p.two} {
		webtest.Value[bool](tab, fmt.Sprintf(`(() => { window.realNow ??= Date.now.bind(Date);
			Date.now = () => realNow() + %d * 60000; return true; })()`, minutes))
	}
}

// looked waits until both tabs have checked their clocks, which they do every two seconds. The timers of a page fire in
// the order of their times, however busy the machine is.
func (p *pair) looked() {
	p.t.Helper()
	for _, tab := range []*webtest.Tab{p.one, p.two} {
		webtest.Value[bool](tab, `new Promise((done) => setTimeout(done, 2001, true))`)
	}
}

func (p *pair) locksTogether(boss blackbox.Account) {
	p.later(14)
	p.two.Front().Press("x")
	p.later(28)
	p.looked()
	p.still("Night shift") // the user is active in the other tab
	p.later(44)
	p.one.See(mark("lock"))
	p.two.Front().See(mark("lock"))
	p.one.Front()
	barriers(p.t, p.one, "lock")
	for _, keys := range []string{"\x1b", "\x1b"} {
		p.one.Press(keys)
	}
	below := webtest.Value[bool](p.one, `[[640, 5], [5, 450], [1275, 450], [640, 895]].some(([x, y]) =>
		!document.elementFromPoint(x, y)?.closest('[data-testid="lock"]'))`)
	if below || !webtest.Value[bool](p.one, `document.querySelector('[data-testid="lock"]')?.matches(':modal')`) {
		p.t.Error("what lies below the lock can be reached")
	}
	p.logsIn(p.one, boss)
	p.still("Night shift")
	p.two.Front().Until(`!document.querySelector('[data-testid="lock"]')`)
}

// survivesItsSession ends the session from elsewhere. The write discovers it, or a screen that is read again: then the
// lock covers the button.
func (p *pair) survivesItsSession(boss blackbox.Account, head blackbox.Headers) {
	p.n.Ok(p.t, "DELETE", "/auth/sessions", `{"all":true}`, head)
	webtest.Value[bool](p.one.Front(), `(document.querySelector('[data-testid="send"]').click(), true)`)
	p.one.See(mark("lock"))
	p.logsIn(p.one, boss)
	p.still("Night shift")
	head["x-auth"], _ = p.n.Session(p.t, boss)
}

// survivesTheNetwork checks that a write without network fails with an error, and that a retry by two clicks
// is the same request.
func (p *pair) survivesTheNetwork() {
	const count = `heard.asked.filter((one) => one === 'POST /admin/roles').length`
	before := webtest.Value[int](p.one, count)
	p.one.Offline(true)
	p.one.Click(mark("send"))
	p.one.Until(`document.querySelector('[role="dialog"] [data-testid="problem"]')?.innerText.includes('NETWORK')`)
	p.still("Night shift")
	p.one.Offline(false)
	webtest.Value[bool](p.one, `(() => { const b = document.querySelector('[data-testid="send"]');
		b.click(); b.click(); return true; })()`)
	p.one.Until(`!document.querySelector('[role="dialog"]')`)
	storetest.Equal(p.t, webtest.Value[int](p.one, count)-before, 2, "requests, one of which failed")
	if keys := webtest.Value[[]string](p.one, `[...new Set(heard.keys.filter((k, n) => k &&
		heard.asked[n] === 'POST /admin/roles').slice(-2))]`); len(keys) != 1 || keys[0] == "" {
		p.t.Errorf("the keys of one intention are %q", keys)
	}
	p.secrets = webtest.Value[[]string](p.one, `heard.secrets`)
	goTo(p.one, "/contracts")
	p.one.See(mark("list"))
}

// keepsNothing checks that the secrets of all logins are in no storage that can be read. A reloaded page gets the
// session from the other tab, and without one by the key.
func (p *pair) keepsNothing() {
	if len(p.secrets) < 4 { // token and key, of two logins in this tab at least
		p.t.Fatalf("the page has seen %d secrets", len(p.secrets))
	}
	var texts [][]byte
	for _, secret := range p.secrets {
		texts = append(texts, []byte(secret))
	}
	const stored = `(async () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie,
		location.href, history.state, document.documentElement.outerHTML, await indexedDB.databases(), await caches.keys(),
		performance.getEntries().map((e) => e.name)]))()`
	for _, tab := range []*webtest.Tab{p.one, p.two} {
		kept := webtest.Value[string](tab, stored)
		for _, secret := range append(p.secrets, "eyJ") {
			storetest.Lacks(p.t, kept, secret, "the page")
		}
	}
	if found := p.one.OnDisk(texts...); len(found) > 0 {
		p.t.Errorf("a secret is in %v", found)
	}
	p.one.Reload()
	p.one.See(mark("list"))
	p.two.Shut()
	p.one.Reload()
	p.one.See(mark("list")) // no tab was left to share the session: it was renewed
	fromChip(p.one, "logout")
	p.one.See(mark("email"))
	p.one.Reload()
	p.one.See(mark("email"))
}

// losesAGrant checks that a refusal removes the forbidden action from the menu and from the screen.
func (p *pair) losesAGrant(agent blackbox.Account, head blackbox.Headers) {
	p.one.Open(p.n.URL + "/console/firewall?label=x")
	p.logsIn(p.one, agent)
	p.one.See(mark("forbidden"))
	goTo(p.one, "/users")
	p.one.See(mark("row"))
	webtest.Value[bool](p.one, `(history.pushState({}, '', '/console/made/up'), true)`)
	p.one.See(mark("missing"))
	p.one.Back()
	p.one.See(mark("row"))
	p.n.Ok(p.t, "DELETE", "/admin/user-roles", `{"userId":"`+agent.ID+`","roleCode":"support"}`, head)
	p.one.Click(`main [aria-label="Refresh"]`)
	p.one.See(mark("forbidden"))
	p.one.Until(`!document.querySelector('[data-testid="nav-/users"]')`)
	fromChip(p.one, "logout")
	p.one.See(mark("email"))
}

// changesHands checks that the next user sees nothing that the previous one typed or read, in any tab.
func (p *pair) changesHands(boss, demo blackbox.Account) {
	p.one.Open(p.n.URL + "/console/roles")
	p.logsIn(p.one, boss)
	p.two = p.one.Another()
	p.two.Open(p.n.URL + "/console/users")
	p.two.See(mark("row"))
	p.types("Day shift")
	p.n.Ok(p.t, "DELETE", "/auth/sessions", `{"all":true}`, p.n.Auth(p.t, boss))
	p.one.Click(mark("send"))
	p.one.See(mark("lock"))
	p.logsIn(p.one, demo)
	p.one.Until(`!document.querySelector('[role="dialog"]') && location.pathname.replace(/\/$/, '') === '/console'`)
	p.two.Front().See(mark("forbidden"))
	if webtest.Value[bool](p.two, `document.body.innerText.includes(`+fmt.Sprintf("%q", boss.Mail)+`)`) {
		p.t.Error("the next one sees what was read before him")
	}
}

// leavesTogether checks that a logout clears every tab, and that a login that was started meanwhile applies to
// all.
func (p *pair) leavesTogether(demo blackbox.Account) {
	fromChip(p.two, "logout")
	p.two.See(mark("email"))
	p.one.Front().See(mark("email"))
	if webtest.Value[bool](p.one, `document.querySelector('nav, [data-testid="lock"]') !== null`) {
		p.t.Error("a tab stays behind")
	}
	p.one.Type(mark("email"), demo.Mail)
	p.one.Type(mark("password"), demo.Password)
	p.one.Click(mark("login"))
	p.one.See(mark("challenge"))
	p.logsIn(p.two.Front(), demo)
	p.one.Front().See(mark("chip"))
}
