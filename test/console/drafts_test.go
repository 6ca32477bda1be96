package console

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
	"castellan/web/webtest"
)

// Typed text is there again after Escape, Back and a reload, without the network, and after a restart of the service.
// A logout removes it.
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
	tab.Offline(true)
	tab.Click(mark("send"))
	tab.Until(`document.querySelector('[role="dialog"] [data-testid="problem"]')?.innerText.includes('NETWORK')`)
	tab.Offline(false)
	still("without the network")
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
