package webtest

import (
	"fmt"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Keys for Keyboard.Press besides letters and digits.
const (
	TabKey    = kb.Tab
	Enter     = kb.Enter
	Escape    = kb.Escape
	Space     = " "
	ArrowDown = kb.ArrowDown
)

// mostTabs bounds the way to an element: no screen has more stops before its end.
const mostTabs = 400

// Keyboard uses a page without a mouse: by real keys alone. After each of its steps a visible element has the focus, or
// the test fails.
type Keyboard struct{ tab *Tab }

// Keyboard returns the tab for a user without a mouse.
func (tab *Tab) Keyboard() Keyboard { return Keyboard{tab} }

// held waits until a visible element has the focus, and describes the error otherwise: "" if all is well. A field that
// only its label shows counts by its label. A dialog takes some frames to move the focus.
const held = `new Promise((resolve) => {
	const until = performance.now() + 20_000; // on a busy machine a screen takes seconds to load
	const look = () => {
		const e = document.activeElement;
		const shown = e?.labels?.[0] ?? e;
		const wrong = !e || e === document.body || e === document.documentElement ? 'nothing has the focus'
			: !shown.checkVisibility({ visibilityProperty: true, opacityProperty: true })
				? 'what has the focus cannot be seen: ' + e.outerHTML.slice(0, 200) : '';
		if (!wrong || performance.now() > until) resolve(wrong);
		else requestAnimationFrame(look);
	};
	look();
})`

// Holds fails the test unless a visible element has the focus.
func (k Keyboard) Holds(step string) {
	k.tab.t.Helper()
	if wrong := Value[string](k.tab, held); wrong != "" {
		k.tab.t.Errorf("%s: %s", step, wrong)
	}
}

// Press presses keys, one after the other, wherever the focus is.
func (k Keyboard) Press(keys string) {
	k.tab.t.Helper()
	k.tab.do("press "+keys, chromedp.KeyEvent(keys, raw))
	k.Holds(fmt.Sprintf("after %q", keys))
}

// raw creates a key event as a keyboard does: the letter is not typed if the page has handled the key itself.
func raw(event *input.DispatchKeyEventParams) {
	if event.Type == kb.KeyDown {
		event.Type = kb.KeyRawDown
	}
}

// To moves forward with the Tab key until the element of the selector has the focus.
func (k Keyboard) To(selector string) { k.tab.t.Helper(); k.walk(selector) }

// Back moves backward, with Shift and Tab.
func (k Keyboard) Back(selector string) {
	k.tab.t.Helper()
	k.walk(selector, chromedp.KeyModifiers(chromedp.ModifierShift))
}

func (k Keyboard) walk(selector string, options ...chromedp.KeyOption) {
	k.tab.t.Helper()
	k.tab.See(selector)
	k.Holds("before going to " + selector)
	at := fmt.Sprintf(`(document.activeElement.matches(%q) ? 'there' : document.activeElement.tagName)`, selector)
	for range mostTabs {
		switch Value[string](k.tab, at) {
		case "there":
			k.Holds("at " + selector)
			return
		case "BODY", "HTML":
			k.tab.t.Errorf("on the way to %s nothing has the focus", selector)
		}
		k.tab.do("press Tab", chromedp.KeyEvent(TabKey, append(options, raw)...))
	}
	k.tab.t.Fatalf("the key Tab does not lead to %s", selector)
}

// Fill moves forward to a field and replaces its content.
func (k Keyboard) Fill(selector, text string) {
	k.tab.t.Helper()
	k.To(selector)
	k.tab.do("select all", chromedp.KeyEvent("a", raw, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	k.Press(text)
}
