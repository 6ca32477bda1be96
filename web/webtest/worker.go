package webtest

import (
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"
)

// Grant permits an origin what a user would be asked for, such as "notifications".
func (tab *Tab) Grant(origin, permission string) {
	tab.t.Helper()
	_, err := chromedp.Call(tab.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: permission}, Origin: origin,
		Setting: browser.PermissionSettingGranted,
	})
	if err != nil {
		tab.fail("grant "+permission, err)
	}
}

// InstallErrors lists why the browser would not install the page as an app; none if it would.
func (tab *Tab) InstallErrors() (reasons []string) {
	tab.t.Helper()
	found, err := chromedp.Call(tab.ctx, page.GetInstallabilityErrors, cdp.Empty{})
	if err != nil {
		tab.fail("judge whether the page can be installed", err)
	}
	for _, one := range found.InstallabilityErrors {
		reasons = append(reasons, one.ErrorID)
	}
	return reasons
}

// Push delivers a Web Push to the service worker of an origin.
func (tab *Tab) Push(origin, data string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	found := chromedp.Events(ctx, serviceworker.WorkerRegistrationUpdated)
	if _, err := chromedp.Call(ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		tab.fail("watch the service workers", err)
	}
	for event, err := range found {
		if err != nil {
			tab.fail("find the service worker", err)
		}
		for _, one := range event.Registrations {
			if !strings.HasPrefix(one.ScopeURL, origin+"/") || one.IsDeleted {
				continue
			}
			_, err := chromedp.Call(ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
				Origin: origin, RegistrationID: one.RegistrationID, Data: data,
			})
			if err != nil {
				tab.fail("deliver a push", err)
			}
			if _, err := chromedp.Call(ctx, serviceworker.Disable, cdp.Empty{}); err != nil {
				tab.fail("end watching the service workers", err)
			}
			return
		}
	}
	tab.fail("deliver a push", fmt.Errorf("%s has no service worker", origin))
}
