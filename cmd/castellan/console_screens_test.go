package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// Every screen of the menu opens on the data of the demonstration, in each look: light and
// dark, from left to right and from right to left, wide and on a phone, and with texts
// forty percent longer. axe-core finds nothing, nothing is cut off, no text is missing, and
// the page asks nobody but its own service. What the policies refuse is a complaint of the
// page, which fails the test.
func TestConsoleScreens(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	if got := s.Command("", "demo", "--users", "100"); got.Code != 0 {
		t.Fatal(got.ErrOut)
	}
	n := s.Start()
	boss := s.Seeded("admin")
	looks := []struct {
		name     string
		view     webtest.View
		language string
		query    string
		barriers bool
	}{
		{"light-en", webtest.View{Width: 1280, Height: 900}, "en", "", true},
		{"dark-ar-phone", webtest.View{Width: 390, Height: 844, Phone: true, Dark: true}, "ar", "", true},
		{"longer-wide-dark", webtest.View{Width: 2560, Height: 1200, Dark: true}, "tr", "?pseudo=1", false},
		{"longer", webtest.View{Width: 1280, Height: 900}, "en", "?pseudo=1", false},
		{"longer-phone", webtest.View{Width: 390, Height: 844, Phone: true}, "en", "?pseudo=1", false},
	}
	tab := webtest.Browser(t)
	for _, look := range looks {
		tab.View(look.view)
		tab.Open(n.URL + "/console")
		tab.See(`[data-testid="email"]`) // by then the page has written its own choice
		webtest.Value[bool](tab, fmt.Sprintf(`(localStorage.setItem('castellan.language', %q), true)`, look.language))
		consoleLogin(t, tab, n, boss, "/"+look.query)
		tab.Until(fmt.Sprintf(`document.documentElement.lang === %q`, look.language))
		screens := webtest.Value[[]string](tab, `[...document.querySelectorAll('[data-testid^="nav-"]')]
			.map((link) => link.dataset.testid.slice(4))`)
		if len(screens) < fewest {
			t.Fatalf("the menu has %d screens, want at least %d: %v", len(screens), fewest, screens)
		}
		for _, screen := range screens {
			step := look.name + " " + screen
			webtest.Value[bool](tab, fmt.Sprintf(`(document.querySelector('[data-testid="nav-%s"]').click(), true)`, screen))
			tab.Until(fmt.Sprintf(`location.pathname.replace(/\/$/, '') === '/console%s'.replace(/\/$/, '')`, screen))
			tab.Until(drawn)
			tab.Screenshot(t, filepath.Join(t.ArtifactDir(), look.name, strings.ReplaceAll(screen, "/", "_")+".png"))
			if cut := webtest.Value[[]string](tab, cutOff); len(cut) > 0 {
				t.Errorf("%s: cut off: %v", step, cut)
			}
			if missing := webtest.Value[[]string](tab, missing); len(missing) > 0 {
				t.Errorf("%s: texts that nobody wrote: %v", step, missing)
			}
			if problems := webtest.Value[[]string](tab, complaints); len(problems) > 0 {
				t.Errorf("%s: refused: %v", step, problems)
			}
			if look.barriers {
				tab.NoBarriers(step)
			}
		}
		if foreign := webtest.Value[[]string](tab, elsewhere); len(foreign) > 0 {
			t.Errorf("%s: the page asked %v", look.name, foreign)
		}
	}
}

// fewest is how many screens the menu of an administrator has at least.
const fewest = 35

// drawn: the heading is there and nothing is on its way.
const drawn = `document.querySelectorAll('main h1').length === 1 &&
	!document.querySelector('main .mantine-Loader-root, main .mantine-Skeleton-root, main [aria-busy="true"]')`

// cutOff are elements whose text does not fit, and the page when it is wider than the window.
const cutOff = `(() => {
	const found = [];
	const { scrollWidth: wide, clientWidth: room } = document.documentElement;
	if (wide > room + 1) found.push('the page: ' + wide + ' in ' + room);
	for (const e of document.querySelectorAll('main *, header *, nav *')) {
		const style = getComputedStyle(e);
		const hides = style.overflowX === 'hidden' || style.overflowX === 'clip';
		if (hides && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && e.textContent.trim() &&
			!e.closest('[aria-hidden="true"], [data-cut="meant"], .mantine-ScrollArea-viewport, .mantine-VisuallyHidden-root'))
			found.push(e.tagName + ' ' + e.className.split(' ')[0] + ': ' + e.textContent.trim().slice(0, 40));
	}
	return found.slice(0, 5);
})()`

// missing are keys of texts on the page, as it shows what nobody translated.
const missing = `[...document.querySelector('#console').innerText.matchAll(/(?<![\w.@/-])(?:` + areas +
	`)\.[a-z][A-Za-z]+(?![\w.@/])/g)].map((m) => m[0]).slice(0, 5)`

// areas are the first words of the keys.
const areas = `home|users|user|audit|jobs|cluster|own|list|login|palette|problem|group|challenge|kyc|aml|` +
	`document|mfa|firewall|roles|balances|adjust|withdrawal|blockage|provider|approval|contract|` +
	`announcement|currency|parameter|corporate`

// elsewhere are the requests that did not go to the console's own service.
const elsewhere = `performance.getEntriesByType('resource').map((r) => r.name)
	.filter((name) => ![location.origin, 'blob:', 'data:'].some((own) => name.startsWith(own)))`

// complaints are the refusals that the screen shows.
const complaints = `[...document.querySelectorAll('main [data-testid="problem"]')]
	.map((e) => e.innerText.replaceAll('\n', ' '))`
