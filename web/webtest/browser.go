package webtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browserNames in the order of preference: Debian's, then other spellings of the same browser.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// chromium is a running browser.
type chromium struct {
	ctx     context.Context
	profile string // its folder
	end     func()
}

// shared is the browser of this process, from its first use until Close. A start costs as much as ten screens.
var shared struct {
	sync.Mutex
	*chromium
}

// Browser opens a private window in the browser that the tests of this process share. Its tabs have cookies, stores and
// workers of their own, and the focus at all times. The window ends with the test.
func Browser(t *testing.T) *Tab {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.chromium != nil && shared.ctx.Err() != nil { // it was killed
		shared.end()
		shared.chromium = nil
	}
	if shared.chromium == nil {
		one, err := start()
		if err != nil {
			t.Fatal(err)
		}
		shared.chromium = one
	}
	return shared.open(t, func() {}, chromedp.WithNewBrowserContext())
}

// Alone starts another Chromium with an empty profile, which ends with the test. It is for tests of what a private
// window lacks: files on the disk, a clipboard of its own, apps and notifications.
func Alone(t *testing.T) *Tab {
	t.Helper()
	one, err := start()
	if err != nil {
		t.Fatal(err)
	}
	return one.open(t, one.end)
}

// Close ends the browser that the tests share. TestMain calls it after the tests.
func Close() {
	shared.Lock()
	defer shared.Unlock()
	if shared.chromium != nil {
		shared.end()
		shared.chromium = nil
	}
}

// open opens a tab, and calls end after the test.
func (one *chromium) open(t *testing.T, end func(), options ...chromedp.ContextOption) *Tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(one.ctx, options...)
	tab := &Tab{t: t, ctx: ctx, console: &console{}, profile: one.profile, effort: &Effort{}}
	t.Cleanup(func() {
		closeTab()
		end()
		for _, complaint := range tab.console.take() {
			t.Errorf("the page complained: %s", complaint)
		}
	})
	tab.begin()
	return tab
}

// begin opens the tab and collects the errors of its pages.
func (tab *Tab) begin() {
	tab.t.Helper()
	messages := chromedp.Console(tab.ctx)
	err := errors.Join(chromedp.Do(tab.ctx), quiet(tab.ctx))
	if err == nil { // only one window of a browser has the focus, and a page without it reports no change of its focus
		_, err = chromedp.Call(tab.ctx, emulation.SetFocusEmulationEnabled,
			emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	if err != nil {
		tab.t.Fatalf("open a tab: %v", err)
	}
	go tab.console.listen(messages)
	tab.View(Desktop)
}

// start starts Chromium with an empty profile.
func start() (*chromium, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "castellan-browser-")
	if err != nil {
		return nil, fmt.Errorf("make a browser profile: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoSandbox, // tests in containers run as root, where the sandbox cannot start
		chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true), // the service under test is on this machine
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, leave := chromedp.NewContext(allocator)
	one := &chromium{ctx, profile, func() {
		leave()
		stop()
		removeProfile(profile)
	}}
	if err := chromedp.Do(ctx); err != nil {
		one.end()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return one, nil
}

func find() (string, error) {
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("chromium is not installed: the pages cannot be tested (Debian: apt-get install chromium)")
}

// Children of the browser may write into the profile for a moment after it has stopped.
func removeProfile(dir string) {
	for range 50 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
