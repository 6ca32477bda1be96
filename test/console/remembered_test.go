package console

import (
	"fmt"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// The demonstration page and the console each have their browser remembered at a login. The next login needs the
// password only, until the owner forgets the browser in the console (D-AUTH-17).
func TestRememberedBrowserOnThePages(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start()
	demo := s.Seeded("user")
	blackbox.Policy(t, n, blackbox.Admin(t, s, n), "LOGIN", 1, `[["SMS"],["MAIL"]]`, `,"remember":30`)

	tab := webtest.Browser(t)
	tab.Open(n.URL + "/")
	login := func() {
		t.Helper()
		tab.Login(demo.Country, demo.Phone, demo.Password)
	}
	logout := func() {
		t.Helper()
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
	}
	login()
	tab.AnswerByOutbox()
	tab.Until(`document.body.dataset.step === 'session'`)
	logout()
	login()
	tab.See("#remember") // a login without the tick remembers nothing
	barriers(t, tab, "a challenge that may remember the browser")
	tab.Click("#remember")
	tab.AnswerByOutbox()
	tab.Until(`document.body.dataset.step === 'session'`)
	for range 2 {
		logout()
		login()
		tab.Until(`document.body.dataset.step === 'session'`)
	}

	const list = `[data-path="/auth/remembered"] `
	enter := func() {
		t.Helper()
		tab.Type(mark("email"), demo.Mail)
		tab.Type(mark("password"), demo.Password)
		tab.Click(mark("login"))
	}
	answer := func() {
		t.Helper()
		tab.See(mark("remember"))
		tab.Click(mark("remember"))
		tab.Type(`[data-testid="code-MAIL"] input`, n.Code(t, demo, "MAIL"))
	}
	rows := func(want int) {
		t.Helper()
		tab.Until(fmt.Sprintf(`document.querySelectorAll('%s[data-testid="row"]').length === %d`, list, want))
	}
	again := func() {
		t.Helper()
		fromChip(tab, "logout")
		tab.See(mark("email"))
		enter()
	}
	tab.Open(n.URL + "/console/me")
	enter()
	answer()
	rows(2)
	again()
	rows(2)
	tab.Click(list + `thead input[type="checkbox"]`)
	tab.Click(mark("bulk-/auth/remembered"))
	tab.Click(mark("bulk-send"))
	rows(0)
	again()
	answer()
	rows(1)
	s.Has(3, "audit WHERE action = $1", "REMEMBER")
}
