package console

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// screens are the screens of the menu: those of its entries, and those of the tabs of an entry.
const screens = `[...document.querySelectorAll('[data-screens]')].flatMap((e) => e.dataset.screens.split(' '))`

// goTo clicks the menu entry of a screen and, where the screen is not the first of its entry, its tab.
func goTo(tab *webtest.Tab, screen string) {
	tab.Click(fmt.Sprintf(`[data-screens~=%q]`, screen))
	tab.Until(fmt.Sprintf(`document.querySelector('[data-screens~=%q][aria-current]')`, screen))
	if head := webtest.Value[string](tab, fmt.Sprintf(
		`document.querySelector('[data-screens~=%q]').dataset.testid`, screen)); head != "nav-"+screen {
		tab.Click(fmt.Sprintf(`[data-testid="go-%s"]`, screen))
	}
	// The screen before stays until the script of this one is loaded.
	tab.Until(fmt.Sprintf(`document.querySelector('[data-screen=%q]')`, screen))
}

// hold stops the clock of the page, so that a decision waits on a slow machine too, until release is called.
func hold(tab *webtest.Tab) (release func()) {
	webtest.Value[bool](tab, `(() => { const now = Date.now, at = now(); Date.now = () => at; window.release = () => {
		Date.now = now; }; return true; })()`)
	return func() { webtest.Value[bool](tab, `(window.release(), true)`) }
}

// clickTo is goTo without the pointer, which would load a script before the click.
func clickTo(tab *webtest.Tab, screen string) {
	tab.Until(fmt.Sprintf(`(() => {
		const tab = document.querySelector('[data-testid="go-%[1]s"]');
		const entry = document.querySelector('[data-screens~="%[1]s"]');
		if (tab || entry.dataset.testid === 'nav-%[1]s') return ((tab ?? entry).click(), true);
		entry.click();
		return false; })()`, screen))
}

// filterBy types into a filter of a list; the button "Filters" shows those that are not always there.
func filterBy(tab *webtest.Tab, name, value string) {
	field := fmt.Sprintf(`[data-testid="filter-%s"]`, name)
	tab.Until(fmt.Sprintf(`document.querySelector('%s, [data-testid="filters"]')`, field))
	if webtest.Value[bool](tab, fmt.Sprintf(`document.querySelector('%s') === null`, field)) {
		tab.Click(`[data-testid="filters"]`)
	}
	tab.Type(field, strings.TrimSuffix(value, "\r")+"\r")
}

// fromChip opens the menu of the user and clicks one of its entries: "logout", "theme", "language-tr".
func fromChip(tab *webtest.Tab, entry string) {
	tab.Click(`[data-testid="chip"]`)
	tab.Click(fmt.Sprintf(`[data-testid=%q]`, entry))
	tab.Until(`!document.querySelector('[data-testid="logout"]')`)
}

// viewer is the tab of a story at the console.
type viewer struct {
	*webtest.Tab
	t *testing.T
}

func mark(name string) string { return fmt.Sprintf("[data-testid=%q]", name) }

// look takes a picture of a step, which must have no accessibility barrier.
func (v viewer) look(name string) {
	v.t.Helper()
	v.Screenshot(v.t, filepath.Join(v.t.ArtifactDir(), "console", name+".png"))
	barriers(v.t, v.Tab, name)
}

// says waits until a text can be read.
func (v viewer) says(text string) {
	v.t.Helper()
	v.Until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// gone waits until an element has disappeared.
func (v viewer) gone(selector string) {
	v.t.Helper()
	v.Until(fmt.Sprintf("!document.querySelector(%q)", selector))
}

// choose selects an option of a field.
func (v viewer) choose(field, option string) {
	v.t.Helper()
	v.Click(field)
	v.Click(fmt.Sprintf(`[role="option"][value=%q]`, option))
}

// chooseOwn is choose for a field whose options other fields have too.
func (v viewer) chooseOwn(field, option string) {
	v.t.Helper()
	v.Click(field)
	list := webtest.Value[string](v.Tab, fmt.Sprintf(`document.querySelector(%q).getAttribute('aria-controls')`, field))
	v.Click(fmt.Sprintf(`[id=%q] [role="option"][value=%q]`, list, option))
}

// to opens a screen by its place in the menu.
func (v viewer) to(path string) {
	v.t.Helper()
	webtest.Value[bool](v.Tab, `(() => { window.headingBefore = document.querySelector('h1'); return true; })()`)
	goTo(v.Tab, path)
	// The previous screen may stay a while.
	v.Until(`![null, window.headingBefore].includes(document.querySelector('h1'))`)
}

// consoleLogin opens a page of the console and logs in there, with the code of a mail.
func consoleLogin(t *testing.T, tab *webtest.Tab, n *blackbox.Node, who blackbox.Account, path string) {
	t.Helper()
	tab.Open(n.URL + "/console" + path)
	tab.Type(`[data-testid="email"]`, who.Mail)
	tab.Type(`[data-testid="password"]`, who.Password)
	tab.Click(`[data-testid="login"]`)
	tab.See(`[data-testid="method-MAIL"]`)
	tab.Type(`[data-testid="code-MAIL"] input`, n.Code(t, who, "MAIL"))
	tab.Until(`document.querySelector('[data-testid^="nav-/"]') !== null`)
}

// opened are the parts that a step adds to a screen: drawers, dialogs, messages and previews of a change.
const opened = `[role="dialog"], [role="alert"], main [data-testid="diff"], main [data-testid="preview"]`

// barriers runs axe-core on a step of a story. On a screen of the menu without filters, which TestConsoleScreens
// checks, it checks only the opened parts. If the test runs on both databases, it does so once, because the pages are
// the same.
func barriers(t *testing.T, tab *webtest.Tab, name string) {
	t.Helper()
	if strings.HasSuffix(t.Name(), "/postgres") {
		return
	}
	at := webtest.Value[struct {
		Path          string
		Login, Filter bool
	}](tab, `({ path: location.pathname.slice('/console'.length),
		login: !document.querySelector('[data-testid^="nav-/"]'), filter: location.search !== '' &&
			![...document.querySelectorAll('[role="dialog"]')].some((e) => e.checkVisibility()) })`)
	if at.Login || at.Filter || !slices.Contains(wholeMenu, at.Path) {
		tab.NoContentBarriers(name)
	} else {
		tab.NoBarriersIn(name, opened)
	}
}

// ownMenu is the menu of every user.
var ownMenu = []string{"/me", "/me/account", "/me/countries", "/me/addresses", "/me/notifications"}

// wholeMenu is the menu of an administrator.
var wholeMenu = append([]string{"/", "/kyc", "/aml", "/documents", "/approvals", "/requests", "/transactions",
	"/withdrawals", "/held", "/users", "/users/active", "/users/registered", "/users/logins", "/corporate",
	"/corporate/users",
	"/balances", "/statement", "/positions", "/adjust", "/blockages", "/providers", "/accounting", "/currencies",
	"/rates", "/fees", "/levels", "/contracts", "/options", "/agreements", "/announcements", "/cdn", "/mailings",
	"/mfa", "/roles", "/service-keys", "/firewall", "/gateways", "/policy", "/audit", "/jobs", "/cluster", "/setup",
	"/parameters"}, ownMenu...)

// toWrite are the screens that are no use to who only reads.
var toWrite = []string{"/kyc", "/adjust", "/accounting", "/announcements", "/mailings", "/cdn"}

// writing are the buttons that write and do not carry the path of their endpoint in their name.
var writing = map[string]string{"decide": "POST /admin/update-status-transaction",
	"approve": "POST /admin/approvals/{id}/approve", "confirm": "POST /user/update-kyc",
	"rule-change": "PATCH /admin/system/waf/rules", "rule-trial": "PATCH /admin/system/waf/rules",
	"rule-status": "PATCH /admin/system/waf/rules", "route-change": "PATCH /admin/guard/routes",
	"matrix-send":   "POST /admin/role-resource-permission",
	"policy-change": "PATCH /admin/system/mfa/policies", "method-change": "PATCH /admin/system/mfa/methods",
	"action-change": "PATCH /admin/system/mfa/actions", "section-add": "POST /admin/create-contract-detail",
	"section-edit": "POST /admin/update-contract-detail", "order-save": "POST /admin/update-contract-detail-order",
	"announcement-add": "POST /announcement/add", "announcement-edit": "POST /announcement/update"}

// rolesOf opens the screens of the roles of the demonstration, and of a role that reads everything and writes nothing.
// The menu has the permitted screens only. No request is refused, in first rows and tabs too, and no button leads to a
// refusal. The screens of the administrator are opened by the test of the looks.
func rolesOf(t *testing.T, n *blackbox.Node, reader blackbox.Account) {
	tab := webtest.Browser(t)
	tab.Open(n.URL + "/console")
	webtest.Value[bool](tab, `(performance.setResourceTimingBufferSize(10000), true)`)
	for _, role := range []struct {
		name string
		who  blackbox.Account
		menu []string
	}{
		{"identity checks", blackbox.DemoAccount(2),
			append([]string{"/", "/kyc", "/aml", "/documents", "/users", "/blockages"}, ownMenu...)},
		{"treasury", blackbox.DemoAccount(3), append([]string{"/", "/approvals", "/transactions", "/withdrawals", "/held",
			"/users", "/balances", "/statement", "/positions", "/adjust", "/blockages", "/providers", "/accounting",
			"/currencies", "/rates", "/audit", "/jobs"}, ownMenu...)},
		{"support", blackbox.DemoAccount(4), append([]string{"/", "/users", "/users/logins", "/mailings"}, ownMenu...)},
		{"reader", reader, slices.DeleteFunc(slices.Clone(wholeMenu), func(path string) bool {
			return slices.Contains(append(toWrite, "/roles", "/service-keys"), path) // the last two are for administrators
		})},
	} {
		tab.See(`[data-testid="email"]`)
		token, _ := n.Session(t, role.who)
		given := permissions(t, n, token)
		share(tab, token)
		tab.Until(`document.querySelector('[data-testid="nav-/"]') !== null`)
		tab.Until(drawn)
		storetest.Same(t, webtest.Value[[]string](tab, screens), role.menu, role.name, "the menu")
		if role.name == "support" { // home starts the search of a customer
			menuTo(tab, "/")
			tab.See(`[data-testid="home.newest"] [data-testid="person"]`)
			tab.Type(`[data-testid="find-customer"]`, "Ayşe Demir\r")
			tab.Until(`location.pathname === '/console/users' && document.querySelector('[data-testid="row"]') !== null`)
		}
		for _, screen := range role.menu {
			menuTo(tab, screen)
			dead(t, tab, role.name+" "+screen, given)
			if !webtest.Value[bool](tab, `(() => {
				const row = document.querySelector('main [data-testid="row"].opens');
				row?.click();
				return !!row; })()`) {
				continue
			}
			tab.Until(atRest)
			dead(t, tab, role.name+" "+screen+", a row", given)
			for i := range webtest.Value[int](tab, `document.querySelectorAll('main [role="tab"]').length`) {
				webtest.Value[bool](tab, fmt.Sprintf(`(document.querySelectorAll('main [role="tab"]')[%d]?.click(), true)`, i))
				tab.Until(atRest)
				dead(t, tab, fmt.Sprintf("%s %s, tab %d of a row", role.name, screen, i), given)
			}
		}
		fromChip(tab, "logout")
	}
	refused := webtest.Value[[]string](tab, `performance.getEntriesByType('resource')
		.filter((e) => e.responseStatus === 403).map((e) => e.name)`)
	if len(refused) > 0 {
		t.Errorf("refused on the way: %v", slices.Compact(refused))
	}
	if asked := webtest.Value[int](tab, `performance.getEntriesByType('resource')
		.filter((e) => e.responseStatus === 200).length`); asked < 100 {
		t.Errorf("the browser tells of %d answers only: nothing is known of refusals", asked)
	}
}

// atRest: what a click asked for is there, in the page or above it.
const atRest = `document.querySelectorAll('main h1').length <= 1 &&
	!document.querySelector('.mantine-Loader-root, .mantine-Skeleton-root, [aria-busy="true"]')`

// menuTo opens a screen of the menu.
func menuTo(tab *webtest.Tab, screen string) {
	clickTo(tab, screen)
	tab.Until(fmt.Sprintf(`location.pathname.replace(/\/$/, '') === '/console%s'.replace(/\/$/, '')`, screen))
	tab.Until(fmt.Sprintf(`document.querySelector('[data-screen=%q]')`, screen)) // until then the screen before is shown
	tab.Until(drawn)
}

// dead finds the buttons on the page whose endpoint was not given, and the refusals that the page shows.
func dead(t *testing.T, tab *webtest.Tab, step string, given []string) {
	t.Helper()
	for _, id := range webtest.Value[[]string](tab, `[...document.querySelectorAll('[data-testid]')]
		.filter((e) => e.checkVisibility()).map((e) => e.dataset.testid)`) {
		path, named := strings.CutPrefix(id, "write-")
		if !named {
			path, named = strings.CutPrefix(id, "bulk-")
		}
		may := slices.Contains(given, writing[id])
		if named {
			may = slices.ContainsFunc(given, func(g string) bool {
				method, of, _ := strings.Cut(g, " ")
				return method != "GET" && of == path
			})
		}
		if (named || writing[id] != "") && !may {
			t.Errorf("%s: the button %s writes, and the service would refuse", step, id)
		}
	}
	if problems := webtest.Value[[]string](tab, complaints); len(problems) > 0 {
		t.Errorf("%s: refused: %v", step, problems)
	}
}

// enters opens a page of the console with the session of a token, in a language if one is given.
func enters(tab *webtest.Tab, n *blackbox.Node, token, page, language string) {
	tab.Open(n.URL + "/console" + page)
	tab.See(`[data-testid="email"]`) // by then the page has written its own choice
	if language != "" {
		webtest.Value[bool](tab, fmt.Sprintf(`(localStorage.setItem('castellan.language', %q), true)`, language))
		tab.Open(n.URL + "/console" + page)
		tab.See(`[data-testid="email"]`)
	}
	share(tab, token)
	tab.Until(`document.querySelector('[data-testid="nav-/"]') !== null`)
}

// share gives a page the session of another tab, as the console does between its own.
func share(tab *webtest.Tab, token string) {
	webtest.Value[bool](tab, fmt.Sprintf(`(() => {
		const at = document.querySelector('meta[name="castellan-tokens"]').content;
		new SharedWorker(at, { type: 'module', name: 'castellan' }).port.postMessage({ token: %q });
		return true; })()`, token))
}

// permissions are what a session may ask for, as "POST /admin/roles".
func permissions(t *testing.T, n *blackbox.Node, token string) (given []string) {
	t.Helper()
	var all []struct{ Method, Path string }
	n.Ok(t, "GET", "/auth/permissions", nil, blackbox.Headers{"x-auth": token}).Read(t, &all)
	for _, p := range all {
		given = append(given, p.Method+" "+p.Path)
	}
	return given
}

// reads gives an account a role that may read everything and write nothing.
func reads(t *testing.T, n *blackbox.Node, who blackbox.Account, admin blackbox.Headers) {
	t.Helper()
	var keys []string
	for _, e := range httpapi.Endpoints() {
		if e.Method == "GET" && !e.Reserved && (e.Audience == rest.Admin || e.Audience == rest.SelfOrAdmin) {
			keys = append(keys, "GET "+e.Path)
		}
	}
	blackbox.Role(t, n, admin, who, "reader", keys...)
}
