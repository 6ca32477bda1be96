package console

import (
	"fmt"
	"path/filepath"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// wordless finds the lines of an open record in which a person reads a word of the interface or a bare number of a
// status, or whose name is one. The raw record is closed.
const wordless = `(() => {
	const words = new RegExp('(?<![\\p{L}\\d./@-])([a-z]+[a-z0-9]*[A-Z]\\w*|[A-Z][A-Z0-9]*_[A-Z0-9_]+|true|false|null)' +
		'(?![\\p{L}\\d])', 'u');
	const found = [];
	for (const line of document.querySelectorAll('[data-testid="fields"] tr')) {
		const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) {
			const { data, parentElement } = texts.currentNode;
			if (!parentElement.closest('[data-code]') && words.test(data)) found.push(line.dataset.field + ': ' + data);
		}
	}
	return found;
})()`

// A row opens its record in words, in every language: the columns of the list with the same names, and no wire name.
// The record as the service sent it is behind a disclosure.
func records(t *testing.T, n *blackbox.Node, token string) {
	tab := webtest.Browser(t)
	for _, language := range []string{"en", "tr", "ar"} {
		tab.Open(n.URL + "/console")
		tab.See(`[data-testid="email"]`)
		webtest.Value[bool](tab, fmt.Sprintf(`(localStorage.setItem('castellan.language', %q), true)`, language))
		tab.Open(n.URL + "/console/")
		tab.See(`[data-testid="email"]`)
		share(tab, token)
		tab.Until(`document.querySelector('[data-testid="nav-/"]') !== null`)
		for _, screen := range []string{"/withdrawals", "/transactions", "/blockages", "/currencies", "/firewall",
			"/gateways", "/requests", "/announcements"} {
			step := language + " " + screen
			menuTo(tab, screen)
			tab.See(`[data-testid="row"]`)
			titles := webtest.Value[[]string](tab, `[...document.querySelectorAll('thead th')]
				.map((e) => e.innerText.trim()).filter(Boolean)`)
			webtest.Value[bool](tab, `(document.querySelector('[data-testid="row"] td:not(.chooses)').click(), true)`)
			tab.See(`[data-testid="fields"] tr`)
			if found := webtest.Value[[]string](tab, wordless); len(found) > 0 {
				t.Errorf("%s: a machine word in a record: %v", step, found)
			}
			lines := webtest.Value[[]string](tab, `[...document.querySelectorAll('[data-testid="fields"] th')]
				.map((e) => e.innerText.trim())`)
			if len(lines) == 0 || lines[0] != titles[0] {
				t.Errorf("%s: the record begins with %q, the list with %q", step, lines, titles)
			}
			if webtest.Value[bool](tab, `document.querySelector('[data-testid="raw"]').open`) {
				t.Errorf("%s: the raw record is open", step)
			}
			tab.PressOn(`[role="dialog"]`, "\x1b")
			tab.Until(`!document.querySelector('[role="dialog"]')`)
		}
	}
	tab.View(webtest.View{Width: 390, Height: 844, Phone: true, Dark: true}) // in Arabic, for docs/console-tour.md
	menuTo(tab, "/withdrawals")
	tab.See(`[data-testid="row"]`)
	tab.Screenshot(t, filepath.Join(t.ArtifactDir(), "dark-ar-phone", "_withdrawals.png"))
}

// On a phone the actions of a selection are in view, and a target of a list has 44 px.
func thumb(t *testing.T, n *blackbox.Node, token string) {
	tab := webtest.Browser(t)
	tab.View(webtest.View{Width: 390, Height: 844, Phone: true})
	tab.Open(n.URL + "/console")
	tab.See(`[data-testid="email"]`)
	share(tab, token)
	tab.Until(`document.querySelector('[data-testid="nav-/"]') !== null`)
	for _, screen := range []string{"/withdrawals", "/transactions"} {
		menuTo(tab, screen)
		tab.See(`[data-testid="row"]`)
		webtest.Value[bool](tab, `(document.querySelector('[data-testid="row"] .choose').click(), true)`)
		tab.Until(`document.querySelector('[data-testid="bulk"]')?.getBoundingClientRect().bottom <= innerHeight + 1`)
		small := webtest.Value[[]string](tab, `[...document.querySelectorAll('[data-testid="list"] button, td.chooses')]
			.map((e) => [e.className, e.getBoundingClientRect()])
			.filter(([, r]) => r.width > 0 && (r.height < 43.5 || r.width < 43.5)).map(([name]) => name).slice(0, 5)`)
		if len(small) > 0 {
			t.Errorf("%s: targets below 44 px: %v", screen, small)
		}
	}
}
