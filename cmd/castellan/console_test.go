package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// An operator logs in to the console with a code, finds an account by its mail address,
// opens its file, and sees the login in the audit. The policies of the page let nothing
// else through: what they refuse is a complaint of the page, which fails the test.
func TestConsole(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, demo := s.Seeded("admin"), s.Seeded("user")
		tab := webtest.Browser(t)
		shot := func(name string) { tab.Screenshot(t, filepath.Join(t.ArtifactDir(), "console", name+".png")) }
		tab.Open(n.URL + "/console/users?email=" + demo.Mail)
		tab.Type(`[data-testid="email"]`, boss.Mail)
		tab.Type(`[data-testid="password"]`, boss.Password)
		shot("login")
		tab.Click(`[data-testid="login"]`)
		tab.See(`[data-testid="method-MAIL"]`)
		shot("challenge")
		tab.Type(`[data-testid="code-MAIL"] input`, n.Code(t, boss, "MAIL"))
		tab.See(`[data-testid="row"]`)
		tab.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
		shot("users")
		tab.NoBarriers("users")
		tab.Click(`[data-testid="row"]`)
		tab.Until(fmt.Sprintf(`location.pathname.startsWith('/console/users/') &&
			document.body.innerText.includes(%q)`, demo.Mail))
		shot("user")
		tab.NoBarriers("user")
		tab.Click(`[data-testid="nav-/audit"]`)
		tab.See(`[data-testid="row"]`)
		tab.Until(`document.body.innerText.includes('LOGIN')`)
		shot("audit")
		tab.NoBarriers("audit")
		tab.Click(`[data-testid="logout"]`)
		tab.See(`[data-testid="login"]`)
	})
}
