package webtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/kit/storetest"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// violation is one rule of axe-core that the page breaks, with its places.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"` // minor, moderate, serious or critical
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// axeTags are the checked rules: WCAG 2.0 to 2.2, levels A and AA, and the rules of good practice.
var axeTags = []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"}

// colourRules are the rules whose outcome depends on colours. All others have the same result in light and dark.
var colourRules = []string{"color-contrast", "link-in-text-block"}

// withoutAlike evaluates an expression while the rows of long lists after the first dozen are hidden. They are built in
// the same way, and axe-core measures the layout of the page thousands of times, also of parts that it excludes.
const withoutAlike = `(async () => {
	const short = new CSSStyleSheet();
	short.replaceSync('tbody tr:nth-child(n+13) { display: none !important; }');
	document.adoptedStyleSheets.push(short);
	try { return await %s; } finally {
		document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== short);
	}
})()`

// frame is the header and the menu, which are the same around each screen of the console.
var frame = []string{".mantine-AppShell-header", ".mantine-AppShell-navbar"}

// finishTransitions ends each CSS transition of the page at once.
const finishTransitions = `(document.getAnimations().forEach(
	(one) => one instanceof CSSTransition && one.finish()), true)`

// NoBarriers fails the test if axe-core finds an accessibility barrier on the page: text that cannot be read, a field
// without a name, a skipped heading level. step names the state of the page for the message.
func (tab *Tab) NoBarriers(step string) {
	tab.t.Helper()
	tab.axe(step, "tag", axeTags)
}

// NoContentBarriers is NoBarriers without the elements of the console's frame.
func (tab *Tab) NoContentBarriers(step string) {
	tab.t.Helper()
	tab.axe(step, "tag", axeTags, frame...)
}

// NoBarriersIn is NoBarriers within the visible elements of a selector, if there are any.
func (tab *Tab) NoBarriersIn(step, selector string) {
	tab.t.Helper()
	visible := fmt.Sprintf("[...document.querySelectorAll(%q)].filter((e) => e.checkVisibility())", selector)
	tab.axeIn(visible, step, "tag", axeTags)
}

// NoColourBarriers is NoBarriers with the rules that depend on colours only.
func (tab *Tab) NoColourBarriers(step string) {
	tab.t.Helper()
	tab.axe(step, "rule", colourRules)
}

// OtherColours runs axe-core's colour rules on the console with its other colours, dark instead of light or the
// reverse. It sets the attribute that the console's own switch sets.
func (tab *Tab) OtherColours(step string) {
	tab.t.Helper()
	tab.otherColours(step)
}

// OtherContentColours is OtherColours without the elements of the console's frame.
func (tab *Tab) OtherContentColours(step string) {
	tab.t.Helper()
	tab.otherColours(step, frame...)
}

func (tab *Tab) otherColours(step string, without ...string) {
	tab.t.Helper()
	flip := func() string {
		return Value[string](tab, `(() => {
			const root = document.documentElement;
			root.dataset.mantineColorScheme = root.dataset.mantineColorScheme === 'dark' ? 'light' : 'dark';
			`+finishTransitions+`;
			return root.dataset.mantineColorScheme; })()`)
	}
	tab.axe(step+" in "+flip(), "rule", colourRules, without...)
	flip()
}

// axe runs the rules on the page, without the elements of some selectors.
func (tab *Tab) axe(step, kind string, names []string, without ...string) {
	tab.t.Helper()
	tab.axeIn("['html']", step, kind, names, without...)
}

// axeIn runs the rules on elements, an expression of JavaScript, without those of some selectors.
func (tab *Tab) axeIn(elements, step, kind string, names []string, without ...string) {
	tab.t.Helper()
	if !Value[bool](tab, "typeof window.axe === 'object'") {
		Value[bool](tab, "(() => { "+axe+"; return true; })()")
	}
	values := storetest.Value(json.Marshal(names))(tab.t)
	exclude := storetest.Value(json.Marshal(append([]string{}, without...)))(tab.t)
	Value[bool](tab, finishTransitions) // a message that fades in has less contrast than its colours
	run := fmt.Sprintf(`((include) => include.length === 0 ? null : window.axe.run({ include, exclude: %s },
		{ runOnly: { type: %q, values: %s }, resultTypes: ['violations'] })
		.then((result) => result.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help,
			nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) }))))(%s)`,
		exclude, kind, values, elements)
	found := Value[[]violation](tab, fmt.Sprintf(withoutAlike, run))
	for _, one := range found {
		tab.t.Errorf("%s: %s", step, one)
	}
}

// String returns the rule with the first places, each once.
func (v violation) String() string {
	const shown = 4
	var places []string
	for _, node := range v.Nodes {
		place := node.HTML + "\n\t\t" + strings.ReplaceAll(node.Summary, "\n", "\n\t\t")
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	places = places[:min(len(places), shown)]
	return fmt.Sprintf("%s (%s), %d places: %s\n\t%s", v.ID, v.Impact, len(v.Nodes), v.Help, strings.Join(places, "\n\t"))
}
