package webtest

import (
	"cmp"
	"context"
	"fmt"

	"github.com/chromedp/chromedp"
)

// Click waits until the element is visible, enabled and stable with nothing above it, then clicks it. The browser
// receives a point on the screen: while the page still grows, another element may move there. A click that would reach
// another element reaches none, and is repeated.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	for {
		at, err := lasting[[]float64](ctx, fmt.Sprintf(aim, selector))
		if err == nil {
			err = chromedp.Do(ctx, chromedp.MouseClickXY(at[0], at[1]))
		}
		if err == nil && !tab.missed(ctx) {
			tab.effort.Clicks++
			return
		}
		if err != nil || ctx.Err() != nil {
			tab.fail("click "+selector, cmp.Or(err, ctx.Err()))
		}
	}
}

// missed ends what aim began. A page that the click has left, and that therefore cannot answer, was hit.
func (tab *Tab) missed(ctx context.Context) bool {
	missed, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("window.endAim?.() === true"))
	return err == nil && missed
}

// aim waits until the element can be clicked: it has not moved since the previous frame, and the point of a click
// belongs to it. It returns that point. From then on it keeps the next click from all other elements until endAim,
// which returns whether the click missed its element.
const aim = `new Promise((resolve) => {
	const selector = %q;
	let pause = 1, before = '';
	const rests = (e) => {
		e.scrollIntoViewIfNeeded();
		const box = e.getClientRects()[0];
		const place = [box.x, box.y, box.width, box.height].join();
		const still = place === before;
		before = place;
		const at = [box.x + box.width / 2, box.y + box.height / 2];
		const hit = document.elementFromPoint(...at);
		return still && (e.contains(hit) || hit?.closest('label')?.control === e) && at;
	};
	const look = () => {
		const e = document.querySelector(selector);
		if (!e?.getClientRects().length || e.hasAttribute('disabled')) {
			scheduler.postTask(look, { delay: pause });
			pause = Math.min(32, 2 * pause);
			return;
		}
		const at = rests(e);
		if (!at) return requestAnimationFrame(look);
		guard();
		resolve(at);
	};
	const guard = () => {
		let e, missed = false;
		const check = (event) => {
			e ??= document.querySelector(selector);
			const hit = !e?.isConnected || e.contains(event.target) || event.target.closest?.('label')?.control === e;
			if (hit && !missed) return;
			missed = true;
			event.preventDefault();
			event.stopImmediatePropagation();
		};
		const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'];
		for (const kind of kinds) window.addEventListener(kind, check, true);
		window.endAim = () => {
			for (const kind of kinds) window.removeEventListener(kind, check, true);
			delete window.endAim;
			return missed;
		};
	};
	look();
})`
