package console

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// An operator logs in to the console with a code, finds an account by its mail address, opens its file, and
// sees the login in the audit. A violation of the page's content security policy is an error of the page,
// which fails the test.
func TestConsoleFindsUserAndAudit(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, demo := s.Seeded("admin"), s.Seeded("user")
		tab := webtest.Browser(t)
		shot := func(name string) { tab.Screenshot(t, filepath.Join(t.ArtifactDir(), "console", name+".png")) }
		consoleLogin(t, tab, n, boss, "/users?email="+demo.Mail)
		tab.See(`[data-testid="row"]`)
		tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
		shot("users")
		barriers(t, tab, "users")
		tab.Click(`[data-testid="row"]`)
		tab.Until(fmt.Sprintf(`location.pathname.startsWith('/console/users/') &&
			document.body.innerText.includes(%q)`, demo.Mail))
		tab.Until(drawn)
		shot("user")
		barriers(t, tab, "user")
		goTo(tab, "/audit")
		tab.See(`[data-testid="row"]`)
		tab.See(acted("LOGIN"))
		shot("audit")
		barriers(t, tab, "audit")
		fromChip(tab, "logout")
		tab.See(`[data-testid="login"]`)
	})
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

// opened are the parts that appear above a page: drawers, dialogs and messages.
const opened = `main [role="alert"], [role="dialog"], .mantine-Notifications-root [role="alert"]`

// barriers runs axe-core on what a step of a story adds to the screens of the menu. TestConsoleScreens checks these. It
// checks an open drawer, dialog or message alone, or else a page with its own address. If the test runs on both
// databases, it does so once, because the pages are the same on both.
func barriers(t *testing.T, tab *webtest.Tab, name string) {
	t.Helper()
	if strings.HasSuffix(t.Name(), "/postgres") {
		return
	}
	path := "location.pathname.slice('/console'.length) + location.search"
	if !tab.NoBarriersIn(name, opened) && !slices.Contains(wholeMenu, webtest.Value[string](tab, path)) {
		tab.NoContentBarriers(name)
	}
}
