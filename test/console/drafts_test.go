package console

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
	"castellan/web/webtest"
)

// Typed text is there again after Escape, Back and a reload, and after a restart of the service. A logout removes it.
func TestConsoleKeepsDrafts(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("HTTP_ADDR=" + porttest.Free(t))
	n := s.Start()
	boss := s.Seeded("admin")
	tab := webtest.Browser(t)
	consoleLogin(t, tab, n, boss, "/roles")
	tab.Until(drawn)
	still := func(when string) {
		t.Helper()
		tab.See(theName)
		storetest.Equal(t, webtest.Value[string](tab, `document.querySelector('`+theName+`').value`), "Night shift", when,
			"the form holds")
	}
	open := func() { tab.Click(mark("write-/admin/roles")) }
	open()
	tab.Type(`[role="dialog"] [data-testid="field-code"]`, "night")
	tab.Type(theName, "Night shift")
	tab.Press("\x1b")
	tab.Click(mark("draft-keep"))
	tab.Until(noDialog)
	open()
	tab.See(mark("restored"))
	still("after Escape")
	tab.Back()
	tab.Until(noDialog + ` && location.pathname.endsWith('/roles')`)
	open()
	still("after Back")
	n.Stop()
	s.Start()
	still("after a restart of the service")
	tab.Reload()
	still("after a reload, which keeps the session")
	tab.Press("\x1b")
	tab.Click(mark("draft-keep"))
	tab.Until(noDialog)
	const stored = `JSON.stringify({ ...sessionStorage })`
	tab.Until(stored + `.includes('Night shift')`)
	fromChip(tab, "logout")
	tab.See(mark("email"))
	storetest.Equal(t, webtest.Value[string](tab, stored), "{}", "after the logout the tab keeps")
}

// keeper is an operator whose network fails once in a while.
type keeper struct {
	*webtest.Tab
	t *testing.T
}

const consoleScripts = "*/console/files/*.js*"

// A script that fails to load never reloads the page: an error with a retry button replaces the missing part.
// The session, which only this tab has, and the typed text stay.
func TestConsoleSurvivesScriptFailure(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("LIMITS_ENABLED=false", "MFA_GUARDED=POST /admin/roles=ADD_ROLE")
	n := s.Start()
	k := keeper{webtest.Browser(t), t}
	consoleLogin(t, k.Tab, n, s.Seeded("admin"), "/firewall")
	k.Until(drawn) // all loading is finished
	webtest.Value[bool](k.Tab, `(window.samePage = true)`)
	k.screens()
	k.chart()
	k.form()
	k.language()
	k.newVersion()
	if !webtest.Value[bool](k.Tab, `window.samePage === true`) {
		t.Error("the page was loaded again")
	}
}

// open clicks a menu entry without hovering over it, which would load its script beforehand.
func (k keeper) open(path string) {
	k.t.Helper()
	k.See(`[data-screens~="` + path + `"]`)
	clickTo(k.Tab, path)
}

// fails waits for the error in the place of the missing part, heals the network, and retries.
func (k keeper) fails(failed func() string, heal func()) {
	k.t.Helper()
	address := failed()
	k.Until(`document.querySelector('main [data-testid="problem"]')?.innerText.includes('NETWORK')`)
	k.still()
	storetest.Contains(k.t, address, "/console/files/", "failed request")
	heal()
	k.Click("main " + mark("again"))
}

// still checks that the page was not reloaded and the user is logged in.
func (k keeper) still() {
	k.t.Helper()
	if !webtest.Value[bool](k.Tab, `window.samePage === true && !!document.querySelector('[data-testid="chip"]')`) {
		k.t.Fatal("the page was loaded again, or the session is gone")
	}
}

// screens opens one whose own script fails, one whose imported script fails, and one whose script fails to
// load in the browser after it was there.
func (k keeper) screens() {
	for _, one := range []struct {
		path, heading string
		kind          webtest.Request
		pass          int
	}{
		{"/contracts", "Contracts", webtest.Fetched, 0},
		{"/announcements", "Announcements", webtest.Fetched, 1},
		{"/mailings", "Mailings", webtest.Script, 0},
	} {
		failed, heal := k.FailOne(consoleScripts, one.kind, one.pass)
		k.open(one.path)
		k.fails(failed, heal)
		k.Until(`document.querySelector('main h1')?.innerText === '` + one.heading + `'`)
		k.Until(drawn)
		k.still()
	}
}

// chart fails below a list, and leaves the list and its filters unchanged.
func (k keeper) chart() {
	k.open("/positions")
	k.See(mark("filter-symbol"))
	failed, heal := k.FailOne(consoleScripts, webtest.Fetched, 0)
	filterBy(k.Tab, "symbol", "BTC\r")
	k.fails(failed, heal)
	k.Until(`document.querySelector('main').innerText.split('No matching entries.').length === 3`) // table and chart
	k.See(mark("filter-symbol"))
}

// form requires a code before a write. A script of the challenge fails; the challenge and the form work.
func (k keeper) form() {
	k.open("/roles")
	k.Click(mark("write-/admin/roles"))
	k.Type(`[role="dialog"] [data-testid="field-code"]`, "night")
	k.Type(`[role="dialog"] [data-testid="field-name"]`, "Night shift")
	failed, heal := k.FailOne(consoleScripts, webtest.Fetched, 0)
	k.Click(mark("send"))
	failed()
	heal()
	k.See(mark("challenge"))
	k.Click(mark("challenge-cancel"))
	k.Until(`!document.querySelector('[data-testid="challenge"]')`)
	typed := webtest.Value[string](k.Tab, `document.querySelector('[role="dialog"] [data-testid="field-name"]').value`)
	storetest.Equal(k.t, typed, "Night shift", "the form holds")
	k.Press("\x1b")
	k.Click(mark("draft-discard"))
	k.Until(noDialog)
}

// language fails to load its texts, and loads them on the next attempt.
func (k keeper) language() {
	choose := func() {
		fromChip(k.Tab, "language-tr")
	}
	failed, heal := k.FailOne(consoleScripts, webtest.Fetched, 0)
	choose()
	failed()
	heal()
	k.Until(`document.querySelector('.mantine-Notification-root [data-testid="problem"]')`)
	k.still()
	choose()
	k.Until(`document.documentElement.lang === 'tr'`)
}

// newVersion removes the file from the service. The page explains it and waits for the operator to reload.
func (k keeper) newVersion() {
	webtest.Value[bool](k.Tab, `(() => {
		const real = window.fetch;
		window.fetch = (to, init) => real(String(to).includes('/console/files/') ? '/console/files/gone.js' : to, init);
		return true;
	})()`)
	k.open("/parameters")
	k.Until(`document.querySelector('main [data-testid="problem"]')?.innerText.includes('NEW_VERSION')`)
	k.still()
}
