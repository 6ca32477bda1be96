package webtest

import (
	"context"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	requests "github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"castellan/internal/load"
)

// Request is a kind of requests.
type Request = requests.ResourceType

// Kinds of requests for FailOne: the requests of a page's fetch, and a script that the browser loads.
const (
	Fetched = requests.ResourceTypeFetch
	Script  = requests.ResourceTypeScript
)

// FailOne lets a number of requests pass, and then fails one file as without a network: the next request and every
// later one to the same path. pattern is an address, in which * matches any characters. It returns at once. failed
// waits for the first failure and names the address; heal ends the failures.
func (tab *Tab) FailOne(pattern string, kind Request, pass int) (failed func() string, heal func()) {
	t := tab.t
	t.Helper()
	ctx, stop := context.WithCancel(tab.ctx)
	paused := chromedp.Events(ctx, fetch.RequestPaused)
	only := fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: pattern, ResourceType: kind}}}
	if _, err := chromedp.Call(ctx, fetch.Enable, only); err != nil {
		t.Fatalf("intercept requests: %v", err)
	}
	first, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		file := ""
		for event, err := range paused {
			if err != nil {
				ended <- err
				return
			}
			path, _, _ := strings.Cut(event.Request.URL, "?")
			if file == "" && pass == 0 {
				file = path
				first <- event.Request.URL
			}
			if path == file {
				gone := fetch.FailRequestParams{RequestID: event.RequestID, ErrorReason: requests.ErrorReasonConnectionFailed}
				_, err = chromedp.Call(ctx, fetch.FailRequest, gone)
			} else {
				_, err = chromedp.Call(ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: event.RequestID})
				pass = max(pass-1, 0)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	failed = func() string {
		t.Helper()
		select {
		case address := <-first:
			return address
		case err := <-ended:
			t.Fatalf("fail a request to %s: %v", pattern, err)
		case <-time.After(stepTimeout):
			t.Fatalf("no request to %s within %s (%s)", pattern, stepTimeout, load.Now())
		}
		return ""
	}
	heal = func() {
		t.Helper()
		defer stop()
		if _, err := chromedp.Call(ctx, fetch.Disable, cdp.Empty{}); err != nil {
			t.Fatalf("let requests pass: %v", err)
		}
	}
	return failed, heal
}
