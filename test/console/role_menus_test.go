package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

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
		if got := webtest.Value[[]string](tab, screens); !slices.Equal(got, role.menu) {
			t.Errorf("%s: the menu is %v, want %v", role.name, got, role.menu)
		}
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
