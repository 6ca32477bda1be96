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
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
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
