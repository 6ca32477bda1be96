package console

import (
	"fmt"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// The token is in the memory of the tabs only, which share it: a login, a logout, the lock
// after a quarter of an hour and the end of a session are those of all of them. What was
// typed stays below the login, for the person who typed it and for nobody else. What
// somebody may not do any more leaves the menu. The pages are the same on both databases.
func TestConsoleTabs(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	boss, demo := s.Seeded("admin"), s.Seeded("user")
	auth, _ := n.Session(t, boss)
	head := blackbox.Headers{"x-auth": auth}
	agent := s.AddUser("user")
	giveRole(t, n, head, agent, "support", supportCalls)

	one := webtest.Browser(t)
	one.Open(n.URL + "/console/roles")
	listens(one)
	p := &pair{t: t, n: n, one: one}
	p.logsIn(one, boss)
	one.Until(drawn)
	p.two = one.Another()
	p.two.Open(n.URL + "/console/me")
	p.two.See(mark("row")) // nobody asks who is there
	p.types("Night shift")
	p.locksTogether(boss)
	p.survivesItsSession(boss, head)
	p.survivesTheNetwork()
	if got := s.Count("role WHERE code = 'night'"); got != 1 {
		t.Errorf("%d roles were made", got)
	}
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

// listens writes down what the page sends and gets: the requests, their keys, and its secrets.
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

// logsIn answers the login that a tab shows, with two clicks where one is meant.
func (p *pair) logsIn(tab *webtest.Tab, who blackbox.Account) {
	p.t.Helper()
	tab.Type(mark("email"), who.Mail)
	tab.Type(mark("password"), who.Password)
	tab.See(mark("login"))
	webtest.Value[bool](tab, `(() => { const b = document.querySelector('[data-testid="login"]');
		b.click(); b.click(); return true; })()`)
	tab.See(mark("method-MAIL"))
	tab.Type(`[data-testid="code-MAIL"] input`, p.n.Code(p.t, who, "MAIL"))
	tab.Until(`!document.querySelector('[data-testid="challenge"]') && document.querySelector('[data-testid="nav-/"]')`)
}

const theName = `[role="dialog"] [data-testid="field-name"]`

// types opens a form in the first tab and begins to fill it in.
func (p *pair) types(name string) {
	p.t.Helper()
	p.one.Front().Click(mark("write-/admin/roles"))
	p.one.Type(`[role="dialog"] [data-testid="field-code"]`, "night")
	p.one.Type(theName, name)
}

// still: what was typed is there, and can be seen.
func (p *pair) still(name string) {
	p.t.Helper()
	p.one.Front().See(theName)
	p.one.Until(`!document.querySelector('[data-testid="lock"]')`)
	if typed := webtest.Value[string](p.one, `document.querySelector('`+theName+`').value`); typed != name {
		p.t.Errorf("what was typed is %q, want %q", typed, name)
	}
}

// later puts the clocks of both tabs on, so many minutes from the true time.
func (p *pair) later(minutes int) {
	p.t.Helper()
	for _, tab := range []*webtest.Tab{p.one, p.two} {
		webtest.Value[bool](tab, fmt.Sprintf(`(() => { window.realNow ??= Date.now.bind(Date);
			Date.now = () => realNow() + %d * 60000; return true; })()`, minutes))
	}
}

// looked waits until both tabs have had the time to look at their clocks.
func (p *pair) looked() {
	p.t.Helper()
	webtest.Value[bool](p.one, `new Promise((done) => setTimeout(() => done(true), 2500))`)
}

func (p *pair) locksTogether(boss blackbox.Account) {
	p.t.Helper()
	p.later(14)
	p.two.Front().Press("x")
	p.later(28)
	p.looked()
	p.still("Night shift") // somebody is at the other tab
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

// survivesItsSession: somebody ended it from elsewhere, which the next write finds out.
func (p *pair) survivesItsSession(boss blackbox.Account, head blackbox.Headers) {
	p.t.Helper()
	p.n.Ok(p.t, "DELETE", "/auth/sessions", `{"all":true}`, head)
	p.one.Front().Click(mark("send"))
	p.one.See(mark("lock"))
	p.logsIn(p.one, boss)
	p.still("Night shift")
	auth, _ := p.n.Session(p.t, boss)
	head["x-auth"] = auth
}

// survivesTheNetwork: without it a write fails and says so; again, by two clicks, it is the same one. A screen whose
// script could not be read is there once the network is.
func (p *pair) survivesTheNetwork() {
	t := p.t
	t.Helper()
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
	if asked := webtest.Value[int](p.one, count) - before; asked != 2 {
		t.Errorf("%d requests, one of which failed, want 2", asked)
	}
	if keys := webtest.Value[[]string](p.one, `[...new Set(heard.keys.filter((k, n) => k &&
		heard.asked[n] === 'POST /admin/roles').slice(-2))]`); len(keys) != 1 || keys[0] == "" {
		t.Errorf("the keys of one intention are %q", keys)
	}
	p.secrets = webtest.Value[[]string](p.one, `heard.secrets`)
	p.one.Offline(true)
	p.one.Click(mark("nav-/contracts"))
	p.one.Until(`document.querySelector('main [data-testid="problem"]')?.innerText.includes('NETWORK')`)
	p.one.Offline(false)
	p.one.Click(mark("again"))
	p.one.See(mark("list"))
}

// keepsNothing: no secret of any login is anywhere but in the memory, and a page that is read anew asks the other tab.
func (p *pair) keepsNothing() {
	t := p.t
	t.Helper()
	if len(p.secrets) < 4 { // token and key, of two logins in this tab at least
		t.Fatalf("the page has seen %d secrets", len(p.secrets))
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
			if strings.Contains(kept, secret) {
				t.Errorf("the page keeps %.12s… in %s", secret, kept)
			}
		}
	}
	if found := p.one.OnDisk(texts...); len(found) > 0 {
		t.Errorf("a secret is in %v", found)
	}
	p.one.Reload()
	p.one.See(mark("list"))
	p.two.Shut()
	p.one.Reload()
	p.one.See(mark("email")) // nobody was left to ask
}

// losesAGrant: a refusal takes what cannot be asked for any more from the menu and from the screen.
func (p *pair) losesAGrant(agent blackbox.Account, head blackbox.Headers) {
	t := p.t
	t.Helper()
	p.one.Open(p.n.URL + "/console/firewall?label=x")
	p.logsIn(p.one, agent)
	p.one.See(mark("forbidden"))
	p.one.Click(mark("nav-/users"))
	p.one.See(mark("row"))
	webtest.Value[bool](p.one, `(history.pushState({}, '', '/console/made/up'), true)`)
	p.one.See(mark("missing"))
	p.one.Back()
	p.one.See(mark("row"))
	p.n.Ok(t, "DELETE", "/admin/user-roles", `{"userId":"`+agent.ID+`","roleCode":"support"}`, head)
	p.one.Click(`main [aria-label="Refresh"]`)
	p.one.See(mark("forbidden"))
	p.one.Until(`!document.querySelector('[data-testid="nav-/users"]')`)
	p.one.Click(mark("logout"))
	p.one.See(mark("email"))
}

// changesHands: what one has typed and read is nothing for the next one, in no tab.
func (p *pair) changesHands(boss, demo blackbox.Account) {
	t := p.t
	t.Helper()
	p.one.Open(p.n.URL + "/console/roles")
	p.logsIn(p.one, boss)
	p.two = p.one.Another()
	p.two.Open(p.n.URL + "/console/users")
	p.two.See(mark("row"))
	p.types("Day shift")
	p.n.Ok(t, "DELETE", "/auth/sessions", `{"all":true}`, blackbox.Headers{"x-auth": p.other(boss)})
	p.one.Click(mark("send"))
	p.one.See(mark("lock"))
	p.logsIn(p.one, demo)
	p.one.Until(`!document.querySelector('[role="dialog"]') && location.pathname.replace(/\/$/, '') === '/console'`)
	p.two.Front().See(mark("forbidden"))
	if webtest.Value[bool](p.two, `document.body.innerText.includes(`+fmt.Sprintf("%q", boss.Mail)+`)`) {
		t.Error("the next one sees what was read before him")
	}
}

// other is one more session of an account.
func (p *pair) other(who blackbox.Account) string {
	auth, _ := p.n.Session(p.t, who)
	return auth
}

// leavesTogether: a logout leaves nothing, in any tab, and a login that was begun meanwhile is one for all.
func (p *pair) leavesTogether(demo blackbox.Account) {
	p.t.Helper()
	p.two.Click(mark("logout"))
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
	p.one.Front().See(mark("logout"))
}
