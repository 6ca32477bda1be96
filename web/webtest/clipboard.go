package webtest

import (
	"fmt"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Clear empties a field and leaves the focus in it.
func (tab *Tab) Clear(selector string) {
	tab.t.Helper()
	tab.focus(selector)
	tab.do("clear "+selector, command("selectAll"), chromedp.KeyEvent(kb.Backspace))
}

// Keys empties a field and presses one key for each character of a text, unlike Type.
func (tab *Tab) Keys(selector, text string) {
	tab.t.Helper()
	tab.Clear(selector)
	for _, key := range text {
		tab.do("type into "+selector, chromedp.KeyEvent(string(key)))
	}
}

// Paste replaces the content of a field from the clipboard, which gets the text first.
func (tab *Tab) Paste(selector, text string) {
	tab.t.Helper()
	tab.Clear(selector)
	Value[bool](tab, fmt.Sprintf(`(addEventListener('copy', (event) => {
		event.clipboardData.setData('text/plain', %q);
		event.preventDefault();
	}, { once: true }), true)`, text))
	tab.do("paste into "+selector, command("copy"), command("paste"))
}

func (tab *Tab) focus(selector string) {
	tab.t.Helper()
	field := chromedp.CSS(selector)
	tab.do("find "+selector, chromedp.WaitVisible(field), chromedp.WaitEnabled(field), chromedp.ScrollIntoView(field))
	Value[bool](tab, fmt.Sprintf("(document.querySelector(%q).focus(), true)", selector))
}

// command runs a command of a browser menu on the field with the focus.
func command(name string) chromedp.Action[chromedp.Void] {
	return chromedp.KeyEvent("\u0010", func(event *input.DispatchKeyEventParams) {
		if event.Type == kb.KeyDown {
			event.Commands = []string{name}
		}
	})
}
