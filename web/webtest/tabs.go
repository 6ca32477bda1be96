package webtest

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Another opens one more tab of the same browser. Errors on the console of its page fail the test too.
func (tab *Tab) Another() *Tab {
	t := tab.t
	t.Helper()
	ctx, closeTab := chromedp.NewContext(tab.ctx)
	t.Cleanup(closeTab)
	other := &Tab{t: t, ctx: ctx, console: tab.console, profile: tab.profile, effort: tab.effort}
	messages := chromedp.Console(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	go tab.console.listen(messages)
	other.View(Desktop)
	return other
}

// Shut closes a tab that Another opened, and returns when it is gone.
func (tab *Tab) Shut() {
	tab.t.Helper()
	if err := chromedp.Cancel(tab.ctx); err != nil {
		tab.t.Fatalf("close a tab: %v", err)
	}
}

// Front shows the tab; a hidden tab draws nothing, and Until waits for drawn frames.
func (tab *Tab) Front() *Tab {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, page.BringToFront, cdp.Empty{}); err != nil {
		tab.fail("bring the tab to the front", err)
	}
	return tab
}

// Reload reloads the page, as a user does.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.do("reload", chromedp.Reload())
}

// Back goes to the previous page.
func (tab *Tab) Back() {
	tab.t.Helper()
	Value[bool](tab, "(history.back(), true)")
}

// network contains the parameters of Network.emulateNetworkConditions, which also notifies the page of its state.
type network struct {
	Offline  bool    `json:"offline"`
	Latency  float64 `json:"latency"`
	Download float64 `json:"downloadThroughput"`
	Upload   float64 `json:"uploadThroughput"`
}

var emulateNetwork = cdp.Command[network, cdp.Empty]{Method: "Network.emulateNetworkConditions"}

// Offline disconnects the page from the network, or reconnects it.
func (tab *Tab) Offline(off bool) {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, emulateNetwork, network{Offline: off, Download: -1, Upload: -1}); err != nil {
		tab.fail("take the network", err)
	}
}
