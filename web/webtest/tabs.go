package webtest

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Another opens one more tab of the same browser. What its page complains about fails the test too.
func (tab *Tab) Another() *Tab {
	t := tab.t
	t.Helper()
	ctx, closeTab := chromedp.NewContext(tab.ctx)
	t.Cleanup(closeTab)
	other := &Tab{t: t, ctx: ctx, console: tab.console, profile: tab.profile}
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

// Front shows the tab; one behind another draws nothing, and Until waits for what is drawn.
func (tab *Tab) Front() *Tab {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, page.BringToFront, cdp.Empty{}); err != nil {
		tab.fail("bring the tab to the front", err)
	}
	return tab
}

// Reload loads the page anew, as a person does.
func (tab *Tab) Reload() {
	tab.t.Helper()
	tab.do("reload", chromedp.Reload())
}

// Back goes to the page before.
func (tab *Tab) Back() {
	tab.t.Helper()
	Value[bool](tab, "(history.back(), true)")
}

// network are the parameters of Network.emulateNetworkConditions, which tells the page of its state too.
type network struct {
	Offline  bool    `json:"offline"`
	Latency  float64 `json:"latency"`
	Download float64 `json:"downloadThroughput"`
	Upload   float64 `json:"uploadThroughput"`
}

var emulateNetwork = cdp.Command[network, cdp.Empty]{Method: "Network.emulateNetworkConditions"}

// Offline takes the network from the page, or gives it back.
func (tab *Tab) Offline(off bool) {
	tab.t.Helper()
	if _, err := chromedp.Call(tab.ctx, emulateNetwork, network{Offline: off, Download: -1, Upload: -1}); err != nil {
		tab.fail("take the network", err)
	}
}
