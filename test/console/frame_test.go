package console

import (
	"fmt"
	"strings"

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
