// Package webtest tests the service's pages in a real browser, for tests of the pages and of a running service.
//
// The one idea: a Tab offers the few actions of a user (open, click, type, read) and waits for what a user would see,
// never for time. Every error on the page's console, including a blocked script, fails the test.
//
// Start reading at Walk in walk.go. It needs Chromium; without it a test fails with a message, because a skipped walk
// proves nothing.
package webtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"castellan/internal/load"
)

// stepTimeout bounds one action: generous, because the machine may be busy with the tests of every other package. It is
// longer than the patience of package blackbox.
const stepTimeout = 3 * time.Minute

// browserNames in the order of preference: Debian's, then other spellings of the same browser.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// Tab is one tab of a browser that belongs to one test. Its methods fail the test instead of returning errors, and are
// for the test's own goroutine.
type Tab struct {
	t       *testing.T
	ctx     context.Context
	console *console
	profile string // the folder of the browser
	effort  *Effort
}

// Effort counts the work of a person at a page: clicks, and pressed keys with every character that Type types.
type Effort struct{ Clicks, Keys int }

// Effort returns the work since the browser started.
func (tab *Tab) Effort() Effort { return *tab.effort }

// console collects the errors of the page; it outlives the tests that share a tab.
type console struct {
	mu         sync.Mutex
	complaints []string
}

// View is the display of the page. The zero Language keeps the page's own choice.
type View struct {
	Width, Height int64
	Phone         bool // touch and a phone's scale
	Dark          bool
	Language      string // en, tr or ar
}

// Views for screenshots.
var (
	Desktop = View{Width: 1280, Height: 900}
	Phone   = View{Width: 390, Height: 844, Phone: true}
)

// Browser starts Chromium with an empty profile and opens a tab. Both end with the test.
func Browser(t *testing.T) *Tab {
	t.Helper()
	path := find(t)
	profile, err := os.MkdirTemp("", "castellan-browser-")
	if err != nil {
		t.Fatalf("make a browser profile: %v", err)
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
	allocator, stopBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	tab := &Tab{t: t, ctx: ctx, console: &console{}, profile: profile, effort: &Effort{}}
	t.Cleanup(func() {
		closeTab()
		stopBrowser()
		removeProfile(profile)
		for _, complaint := range tab.console.take() {
			t.Errorf("the page complained: %s", complaint)
		}
	})
	messages := chromedp.Console(ctx)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	go tab.console.listen(messages)
	tab.View(Desktop)
	return tab
}

// For gives the same tab to a subtest. Errors of the page still fail the test that started the browser.
func (tab *Tab) For(t *testing.T) *Tab {
	return &Tab{t: t, ctx: tab.ctx, console: tab.console, profile: tab.profile, effort: tab.effort}
}

func find(t *testing.T) string {
	t.Helper()
	for _, name := range browserNames {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("chromium is not installed: the pages cannot be tested (Debian: apt-get install chromium)")
	return ""
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

// A refused request is part of a walk; everything else on the console at this level is an error of the page.
func (c *console) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for message, err := range messages {
		if err != nil {
			return
		}
		if message.Source == "network" || !(message.IsException() || message.Type == "error" || message.Type == "warning") {
			continue
		}
		c.mu.Lock()
		c.complaints = append(c.complaints, message.String())
		c.mu.Unlock()
	}
}

func (c *console) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	complaints := c.complaints
	c.complaints = nil
	return complaints
}

// View sets size, colour scheme and, on a page that has the switch, the language.
func (tab *Tab) View(view View) {
	tab.t.Helper()
	options := []chromedp.EmulateViewportOption{chromedp.EmulateScale(1)}
	if view.Phone {
		options = []chromedp.EmulateViewportOption{
			chromedp.EmulateScale(2),
			chromedp.EmulateMobile,
			chromedp.EmulatePortrait,
			chromedp.EmulateTouch,
		}
	}
	tab.do("set the view", chromedp.EmulateViewport(view.Width, view.Height, options...))
	scheme := "light"
	if view.Dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	if err != nil {
		tab.t.Fatalf("set the colour scheme: %v", err)
	}
	if view.Language != "" {
		tab.Choose("#language", view.Language)
		tab.Until(fmt.Sprintf("document.documentElement.lang === %q", view.Language))
	}
}

// Media displays the page on a "screen" or in "print", in light colours.
func (tab *Tab) Media(kind string) {
	tab.t.Helper()
	_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: kind})
	if err != nil {
		tab.t.Fatalf("set the medium: %v", err)
	}
}

// Open goes to an address and returns when the page has loaded.
func (tab *Tab) Open(url string) {
	tab.t.Helper()
	tab.do("open "+url, chromedp.Navigate(url))
}

// Type replaces the content of a field. For each run of printable characters only the last one is a key press. Those
// before it arrive at once, as from the clipboard, because a form is drawn again at each (a third of the browser's work
// in a walk).
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	field := chromedp.CSS(selector)
	tab.do("find "+selector, chromedp.WaitVisible(field), chromedp.WaitEnabled(field), chromedp.ScrollIntoView(field))
	Value[bool](
		tab,
		fmt.Sprintf("(() => { const e = document.querySelector(%q); e.focus(); e.select(); return true; })()", selector),
	)
	tab.effort.Keys += utf8.RuneCountInString(text)
	for keys := range strings.SplitAfterSeq(text, "\r") {
		end := len(strings.TrimRight(keys, "\r"))
		_, last := utf8.DecodeLastRuneInString(keys[:end])
		tab.do("type into "+selector, insert(keys[:end-last]), chromedp.KeyEvent(keys[end-last:]))
	}
}

// insert inserts text into the field with the focus at once.
func insert(text string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		if text == "" {
			return nil
		}
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// ArrowUp is a key for Press and PressOn.
const ArrowUp = kb.ArrowUp

// PressOn focuses an element and presses a key there.
func (tab *Tab) PressOn(selector, key string) {
	tab.t.Helper()
	tab.See(selector)
	Value[bool](tab, fmt.Sprintf("(() => { document.querySelector(%q).focus(); return true; })()", selector))
	tab.effort.Keys++
	tab.do("press a key on "+selector, chromedp.KeyEvent(key))
}

// Choose selects an option of a select element by its value.
func (tab *Tab) Choose(selector, value string) {
	tab.t.Helper()
	Value[bool](tab, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q;
		e.dispatchEvent(new Event('change', { bubbles: true })); return true; })()`, selector, value))
}

// See waits until the element is visible.
func (tab *Tab) See(selector string) {
	tab.t.Helper()
	tab.do("see "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

// Text waits until the element is visible and returns its text.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	tab.See(selector)
	return Value[string](tab, fmt.Sprintf("document.querySelector(%q).textContent.trim()", selector))
}

// Until waits for a JavaScript expression to become true; it is evaluated at every frame.
func (tab *Tab) Until(expression string) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	waiting := fmt.Sprintf(
		`new Promise((resolve) => { const look = () => (%s) ? resolve(true) : requestAnimationFrame(look); look(); })`,
		expression,
	)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](waiting, chromedp.EvalAwaitPromise)); err != nil {
		tab.fail("wait until "+expression, err)
	}
}

// Value evaluates a JavaScript expression, promises included.
func Value[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.fail("evaluate "+expression, err)
	}
	return value
}

// Screenshot writes the whole page, including the part below the fold, as a PNG: for people, on request with
// -artifacts.
func (tab *Tab) Screenshot(t *testing.T, path string) {
	t.Helper()
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" {
		return
	}
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	if err := tab.picture(ctx, path); err != nil {
		t.Fatalf("take a screenshot: %v", err)
	}
}

func (tab *Tab) picture(ctx context.Context, path string) error {
	image, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, image, 0o644)
}

func (tab *Tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.fail(what, err)
	}
}

// fail ends the test with the page's state at that moment: a timeout alone explains nothing.
func (tab *Tab) fail(what string, err error) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	picture := filepath.Join(tab.t.ArtifactDir(), "failure.png")
	if pictureErr := tab.picture(ctx, picture); pictureErr != nil {
		picture = pictureErr.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not within %s (%s): %w", stepTimeout, load.Now(), err)
	}
	tab.t.Fatalf("%s: %v\npicture: %s\nconsole: %q\npage: %s", what, err, picture, tab.console.take(), text)
}
