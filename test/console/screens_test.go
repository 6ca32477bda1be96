package console

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"castellan/config"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// Every screen of the menu opens on the data of the demonstration, in each look and for each role.
func TestConsoleScreens(t *testing.T) {
	t.Parallel()
	s := blackbox.NewDemoSite(t).Set("LOG_LEVEL=info")
	n, reader := s.Start(), s.AddUser("user")
	boss := blackbox.Admin(t, s, n)
	reads(t, n, reader, boss)
	t.Run("looks", func(t *testing.T) { t.Parallel(); walk(t, n.For(t), boss["x-auth"], looks[:2]) })
	t.Run("more-looks", func(t *testing.T) { t.Parallel(); walk(t, n.For(t), boss["x-auth"], looks[2:]) })
	t.Run("records", func(t *testing.T) { t.Parallel(); records(t, n.For(t), boss["x-auth"]) })
	t.Run("thumb", func(t *testing.T) { t.Parallel(); thumb(t, n.For(t), boss["x-auth"]) })
	t.Run("roles", func(t *testing.T) { t.Parallel(); rolesOf(t, n.For(t), reader) })
}

// A look of the console: a size of the window, a language, long texts or not, and whether axe-core checks it.
type look struct {
	name     string
	view     webtest.View
	language string
	query    string
	barriers bool
}

// The looks are light and dark, from left to right and from right to left, wide and on a phone. In two of them the
// texts are forty percent longer, and axe-core checks the first two.
var looks = []look{
	{"light-en", webtest.View{Width: 1280, Height: 900}, "en", "", true},
	{"longer-dark-ar", webtest.View{Width: 390, Height: 844, Phone: true, Dark: true}, "ar", "?pseudo=1", true},
	{"longer-en", webtest.View{Width: 1280, Height: 900}, "en", "?pseudo=1", false},
	{"wide-dark-tr", webtest.View{Width: 2560, Height: 1200, Dark: true}, "tr", "", false},
}

// walk opens the screens of an administrator in some looks. No text is cut off or missing. The page requests only its
// own service. A violation of the content security policy is an error of the page, which fails the test.
func walk(t *testing.T, n *blackbox.Node, token string, looks []look) {
	tab := webtest.Browser(t)
	for _, look := range looks {
		tab.View(look.view)
		enters(tab, n, token, "/"+look.query, look.language)
		tab.Until(fmt.Sprintf(`document.documentElement.lang === %q`, look.language))
		all := webtest.Value[[]string](tab, screens)
		storetest.Same(t, all, wholeMenu, look.name, "the menu")
		for i, screen := range all {
			step := look.name + " " + screen
			menuTo(tab, screen)
			tab.Screenshot(t, filepath.Join(t.ArtifactDir(), look.name, strings.ReplaceAll(screen, "/", "_")+".png"))
			if cut := webtest.Value[[]string](tab, cutOff); len(cut) > 0 {
				t.Errorf("%s: cut off: %v", step, cut)
			}
			if missing := webtest.Value[[]string](tab, missing); len(missing) > 0 {
				t.Errorf("%s: missing texts: %v", step, missing)
			}
			if problems := webtest.Value[[]string](tab, complaints); len(problems) > 0 {
				t.Errorf("%s: refused: %v", step, problems)
			}
			if hidden := webtest.Value[[]string](tab, hiddenTab); len(hidden) > 0 {
				t.Errorf("%s: the open tab is out of sight: %v", step, hidden)
			}
			if check := layouts[screen]; check != "" {
				if faults := webtest.Value[[]string](tab, check); len(faults) > 0 {
					t.Errorf("%s: %v", step, faults)
				}
			}
			for _, cell := range webtest.Value[[]string](tab, machineWords) {
				t.Errorf("%s: a machine word in a cell: %s", step, cell)
			}
			noBarriers, noOthers := tab.NoContentBarriers, tab.OtherContentColours
			if i == 0 { // with the frame, which is the same around each screen
				noBarriers, noOthers = tab.NoBarriers, tab.OtherColours
			}
			if look.barriers {
				noBarriers(step)
			}
			if look.name == "light-en" { // the wide screen has every element; the phone is checked in dark
				noOthers(step)
			}
		}
		if look.name == "light-en" {
			turns(t, tab)
		}
		if foreign := webtest.Value[[]string](tab, elsewhere); len(foreign) > 0 {
			t.Errorf("%s: the page asked %v", look.name, foreign)
		}
	}
}

// layouts find faults of the layout of single screens.
var layouts = map[string]string{
	// The first row of a queue is its oldest entry.
	"/": `[...document.querySelectorAll('[data-testid^="waits-"]')].filter((card) => {
		const first = card.querySelector('[data-testid="first"] time');
		return !card.querySelector('[data-testid="first"]') ||
			first && first.innerText !== card.querySelector('[data-testid="oldest"] time').innerText;
	}).map((card) => 'not the oldest first: ' + card.innerText)`,
	// The detail is in sight without scrolling, beside the outcome.
	"/audit": `[...document.querySelectorAll('[data-testid="row"] td:nth-child(4)')].map((e) => e.getBoundingClientRect())
		.filter((box) => box.left < 0 || box.right > innerWidth).map((box) => 'the detail is outside the window')`,
	// A document has its customer first, also after the queue of identity checks, which has the same path.
	"/documents": `[...document.querySelectorAll('[data-testid="row"]')]
		.filter((row) => !row.querySelector('td:first-child .name')?.innerText.trim()).map((row) => row.innerText)`,
	// The address of a withdrawal is in sight at 1280 px, with texts of their own length.
	"/withdrawals": `[...document.querySelectorAll('[data-testid="row"] td:last-child')]
		.filter(() => document.querySelector('h1').innerText === 'Withdrawals')
		.map((cell) => cell.getBoundingClientRect().right)
		.filter((right) => right > innerWidth).map((right) => 'an address ends at ' + right + ' px')`,
	// On a phone a finding is a card, as wide as its list.
	"/setup": `[...document.querySelectorAll('main td')].map((cell) => cell.getBoundingClientRect().width)
		.filter((width) => innerWidth < 500 && width < 250).map((width) => 'a cell of ' + width + ' px')`,
	// The tab behind the number of the menu has it too.
	"/requests": `[...document.querySelectorAll('[data-testid="go-/requests"]')]
		.filter((tab) => !tab.querySelector('[data-testid="pending"]')).map(() => 'the tab has no number')`,
	// A phone shows one role. The roles may come after the endpoints.
	"/roles": `[document.querySelectorAll('[data-testid="matrix"] thead th').length]
		.filter((n) => n > 1 && (innerWidth < 500) !== (n === 2)).map((n) => n + ' columns')`,
}

// hiddenTab is the tab of the open screen, if it is outside the window.
const hiddenTab = `[...document.querySelectorAll('main .family [aria-current]')]
	.map((tab) => [tab.innerText, tab.getBoundingClientRect()])
	.filter(([, box]) => box.left < -1 || box.right > innerWidth + 1).map(([name]) => name)`

// turns opens the next page of the longest list: one request, without a count. The inbox is read every minute.
func turns(t *testing.T, tab *webtest.Tab) {
	menuTo(tab, "/users")
	tab.See(`[data-testid="next"]`)
	webtest.Value[bool](tab, `(performance.clearResourceTimings(), true)`)
	webtest.Value[bool](tab, `(document.querySelector('[data-testid="next"]').click(), true)`)
	tab.Until(`new URLSearchParams(location.search).has('cursor')`)
	const requests = `performance.getEntriesByType('resource').map((r) => r.name.replace(location.origin, ''))
		.filter((path) => path !== '/inbox')`
	tab.Until(drawn + ` && ` + requests + `.length > 0`)
	asked := webtest.Value[[]string](tab, requests)
	if len(asked) != 1 || !strings.HasPrefix(asked[0], "/admin/list-users?") || strings.Contains(asked[0], "count=") {
		t.Errorf("to turn a page the console asked %q", asked)
	}
}

// drawn is true when the heading is shown, no request is open, and each chart has its lines.
const drawn = `document.querySelectorAll('main h1').length === 1 &&
	!document.querySelector('main .mantine-Loader-root, main .mantine-Skeleton-root, main [aria-busy="true"]') &&
	![...document.querySelectorAll('main [data-testid="chart"]')]
		.some((e) => e.checkVisibility() && !e.querySelector('canvas'))`

// cutOff finds elements whose text does not fit, and the page if it is wider than the window.
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

// machineWords finds cells of lists in which a person reads a word of the interface: camelCase, UPPER_SNAKE, an id, or
// a whole number below a heading that is no count. A name of a record, such as a currency or a parameter, is marked
// by data-code; a person never is.
const machineWords = `(() => {
	const shapes = { camelCase: /(?<![\w./-])[a-z]+[a-z0-9]*[A-Z]\w*/, id: /(?<!\w)[0-9A-HJKMNP-TV-Z]{26}(?!\w)/,
		'UPPER_SNAKE': /(?<!\w)[A-Z][A-Z0-9]*_[A-Z0-9_]+/, kebab: /^[a-z]+(-[a-z]+)+$/, number: /^-?\d+$/ };
	const found = new Set();
	for (const cell of document.querySelectorAll('main [data-testid="row"] td')) {
		const copy = cell.cloneNode(true);
		copy.querySelectorAll('[data-code], .said, .digits').forEach((e) => e.remove());
		const text = copy.innerText.trim();
		for (const [name, shape] of Object.entries(shapes)) {
			if (name === 'number' && cell.dataset.end) continue;
			const hit = shape.exec(text);
			if (hit) found.add(cell.dataset.label + ': ' + name + ' ' + hit[0]);
		}
		for (const e of cell.querySelectorAll('[data-testid="person"][data-code]'))
			found.add(cell.dataset.label + ': a person as an id ' + e.innerText);
	}
	return [...found];
})()`

// missing finds text keys on the page, which appear if a translation is missing. The names of settings look
// like them.
var missing = `[...document.querySelector('#console').innerText.matchAll(/(?<![\w.@/-])(?:` + areas +
	`)\.[a-z][A-Za-z]+(?![\w.@/])/g)].map((m) => m[0])
	.filter((key) => !` + fmt.Sprintf("%q", strings.Join(config.AllKeys(), " ")) + `.split(' ').includes(key)).slice(0, 5)`

// areas are the first words of the keys.
const areas = `home|users|user|audit|jobs|cluster|setup|own|list|login|palette|problem|group|challenge|kyc|aml|` +
	`document|mfa|firewall|roles|balances|adjust|withdrawal|blockage|provider|approval|contract|` +
	`announcement|currency|parameter|corporate|levels|hold|policy|counters|serviceKeys|fees|state|money|act|gateway|gatewayWhy|evidence`

// elsewhere are the requests that did not go to the console's own service.
const elsewhere = `performance.getEntriesByType('resource').map((r) => r.name)
	.filter((name) => ![location.origin, 'blob:', 'data:'].some((own) => name.startsWith(own)))`

// complaints are the refusals that the screen shows.
const complaints = `[...document.querySelectorAll('main [data-testid="problem"]')]
	.map((e) => e.innerText.replaceAll('\n', ' '))`

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
		enters(tab, n, token, "/", language)
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
	enters(tab, n, token, "", "")
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
