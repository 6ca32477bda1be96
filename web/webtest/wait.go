package webtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
)

// polled waits in the page until a JavaScript expression is true. It looks at growing intervals of at most 32 ms and
// not at every frame: a page that requests every frame keeps four processes of Chromium busy. A test may replace the
// timers of a page, and the scheduler remains.
const polled = `new Promise((resolve, reject) => {
	let pause = 1;
	const look = () => {
		try {
			if (%s) return resolve(true);
		} catch (e) {
			return reject(e);
		}
		scheduler.postTask(look, { delay: pause });
		pause = Math.min(32, 2 * pause);
	};
	look();
})`

// shown is true if the first element of the selector has a box, as a user sees it.
const shown = `(() => {
	const e = document.querySelector(%q);
	return !!e && !!(e.offsetWidth || e.offsetHeight || e.getClientRects().length);
})()`

// See waits until the element is visible.
func (tab *Tab) See(selector string) {
	tab.t.Helper()
	tab.wait("see "+selector, fmt.Sprintf(shown, selector))
}

// Until waits for a JavaScript expression to become true. The page may be replaced meanwhile.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	tab.wait("wait until "+expression, expression)
}

func (tab *Tab) wait(what, expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	if _, err := lasting[bool](ctx, fmt.Sprintf(polled, expression)); err != nil {
		tab.fail(what, err)
	}
}

// lasting evaluates an expression that waits. It begins again on the next page if the page is replaced.
func lasting[T any](ctx context.Context, expression string) (value T, err error) {
	for {
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		if err == nil || ctx.Err() != nil || !replaced(err) {
			return value, err
		}
		time.Sleep(10 * time.Millisecond) // for the next page
	}
}

// replaced reports whether a page was left while it evaluated an expression.
func replaced(err error) bool {
	for _, text := range []string{"context was destroyed", "navigated or closed", "Cannot find default execution context",
		"Promise was collected"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// enter waits until a field is visible and enabled, scrolls it into view, gives it the focus, and then does more with
// it, which is named e.
func (tab *Tab) enter(selector, more string) {
	tab.t.Helper()
	tab.wait("find "+selector, fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		if (!e?.getClientRects().length || e.hasAttribute('disabled')) return false;
		e.scrollIntoViewIfNeeded();
		e.focus();
		%s
		return true;
	})()`, selector, more))
}

// quiet ends the reports of each change of elements and styles: the page itself finds and judges its elements here.
func quiet(ctx context.Context) error {
	if _, err := chromedp.Call(ctx, css.Disable, cdp.Empty{}); err != nil {
		return err
	}
	_, err := chromedp.Call(ctx, dom.Disable, cdp.Empty{})
	return err
}
