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
