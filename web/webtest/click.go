package webtest

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// Click waits until the element is visible, enabled and stable with nothing above it, then clicks it. The browser
// receives a point on the screen: while the page still grows, another element may move there. A click that would reach
// another element reaches none, and is repeated.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	element := chromedp.CSS(selector)
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	for {
		err := chromedp.Do(ctx, chromedp.WaitVisible(element), chromedp.WaitEnabled(element),
			chromedp.ScrollIntoView(element))
		if err == nil {
			tab.Until(fmt.Sprintf(atRest, selector))
			Value[bool](tab, fmt.Sprintf(aim, selector))
			err = chromedp.Do(ctx, chromedp.Click(element))
		}
		if err == nil && !tab.missed(ctx) {
			tab.effort.Clicks++
			return
		}
		// The page may draw the element again between two steps; then nothing was clicked.
		drawnAgain := err == nil || strings.Contains(err.Error(), "node with given id")
		if !drawnAgain || ctx.Err() != nil {
			tab.fail("click "+selector, cmp.Or(err, ctx.Err()))
		}
	}
}

// missed ends what aim began. A page that the click has left, and that therefore cannot answer, was hit.
func (tab *Tab) missed(ctx context.Context) bool {
	missed, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.endAim?.() === true"))
	return err == nil && missed
}

// aim keeps the next click from all other elements until endAim, which returns whether the click missed its element.
const aim = `(() => {
	let e, missed = false;
	const guard = (event) => {
		e ??= document.querySelector(%q);
		const hit = !e?.isConnected || e.contains(event.target) || event.target.closest?.('label')?.control === e;
		if (hit && !missed) return;
		missed = true;
		event.preventDefault();
		event.stopImmediatePropagation();
	};
	const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
	for (const kind of kinds) window.addEventListener(kind, guard, true);
	window.endAim = () => {
		for (const kind of kinds) window.removeEventListener(kind, guard, true);
		delete window.endAim;
		return missed;
	};
	return true;
})()`

// atRest is true if the element has not moved since the previous frame, and the point of a click belongs to it. An
// element that other content has moved out of sight is scrolled into it again.
const atRest = `(() => {
	const e = document.querySelector(%q);
	const box = e?.getClientRects()[0];
	if (!box) return false;
	const place = [box.x, box.y, box.width, box.height].join();
	const still = e.placeBefore === place;
	e.placeBefore = place;
	const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
	if (still && !hit) e.scrollIntoView({ block: 'center', behavior: 'instant' });
	return still && (e.contains(hit) || hit?.closest('label')?.control === e);
})()`
