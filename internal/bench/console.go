package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	web "castellan/web/console"
)

// slowdown is how much slower than this machine's processor the browser's page is while the console starts, as the
// promise states.
const slowdown = 4

// operators measures the time until a user can log in to the console, with an empty cache and the second time, and the
// size of the console.
func operators(b *bench) {
	p := b.sqlite(cheap()) // the database does not matter
	defer p.bare.close()
	s := p.serve(0)
	defer s.stop()
	chromium, stop := browse()
	defer stop()
	of := series{}
	for range b.rounds {
		b.await()
		opened(chromium, "http://"+s.addr+"/console", of)
	}
	all, first := sizes()
	r := &b.report
	r.begin("The operators' console until its login accepts input, the page %d times slower than this machine", slowdown)
	r.line("navigation to a usable login, empty cache", "ms", of["cold"], atMost(1500))
	r.line("the same, from the cache", "ms", of["warm"], bar{})
	r.line("scripts before the login, as gzip", "kB", []float64{float64(first) / 1e3}, atMost(180))
	r.line("bytes that the browser took, all kinds", "kB", of["bytes"], bar{})
	r.line("the console's part of the binary", "MB", []float64{float64(all) / 1e6}, atMost(0.65))
}

// sizes returns the bytes of the console in the program and those of the scripts that are loaded
// before the login.
func sizes() (all, first int) {
	m, _ := web.Built()
	for name := range m.Files {
		zipped, _ := web.File(name)
		all += len(zipped)
		if slices.Contains(m.First, name) {
			first += len(zipped)
		}
	}
	return all, first
}

// browse starts Chromium without a window.
func browse() (ctx context.Context, stop func()) {
	path, err := exec.LookPath("chromium")
	must(within("the console is measured in Chromium (Debian: apt-get install chromium)", err))
	dir := need(os.MkdirTemp("", "bench-browser-"))
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("no-proxy-server", true))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, leave := chromedp.NewContext(allocator)
	stop = func() {
		leave()
		end()
		os.RemoveAll(dir)
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		must(err)
	}
	return ctx, stop
}

// usable resolves with the time since the navigation when the first field of the login has the focus and the page is
// idle.
const usable = `window.usable = new Promise((resolve) => {
	const look = () => {
		const field = document.querySelector('[data-testid="email"]');
		if (field && document.activeElement === field) setTimeout(() => resolve(performance.now()));
		else requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
});`

// fresh returns a tab without a cache that shares nothing with others.
func fresh(chromium context.Context) (tab context.Context, leave func()) {
	tab, closed := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	tab, late := context.WithTimeout(tab, time.Minute)
	return tab, func() { late(); closed() }
}

// opened opens the console twice in a fresh tab, and types into the login.
func opened(chromium context.Context, url string, of series) {
	tab, leave := fresh(chromium)
	defer leave()
	need(chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: usable}))
	need(chromedp.Call(tab, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: slowdown}))
	for _, name := range []string{"cold", "warm"} {
		must(chromedp.Do(tab, chromedp.Navigate("about:blank"), chromedp.Navigate(url)))
		took := need(evaluated[float64](tab, "window.usable"))
		must(chromedp.Do(tab, chromedp.KeyEvent("a")))
		if typed := need(evaluated[string](tab, `document.querySelector('[data-testid="email"]').value`)); typed != "a" {
			must(fmt.Errorf("the field has %q after the key a", typed))
		}
		of.add(name, took)
		if name == "cold" {
			bytes := need(evaluated[float64](tab, `['navigation', 'resource'].flatMap((k) => performance.getEntriesByType(k))
				.reduce((sum, r) => sum + r.transferSize, 0)`))
			of.add("bytes", bytes/1e3)
		}
	}
}

func evaluated[T any](tab context.Context, expression string) (T, error) {
	return chromedp.Run(tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// million measures the time until a page of a list of a million accounts is displayed: the first one, and the
// thousandth by its address.
func million(b *bench) {
	many := b.many(1_000_000, 100_000, 2_000)
	chromium, stop := browse()
	defer stop()
	b.report.begin("Pages of 100 of the list of users in the browser, %d accounts, from the request to the rows", many)
	b.onEach(cheap(), many, func(p *place, s *server) { b.millionOn(p, s, many, chromium) })
}

func (b *bench) millionOn(p *place, s *server, many int, chromium context.Context) {
	v, token := administrator(s)
	defer v.Close()
	// The thousandth page, as a client reaches it.
	next := "/admin/list-users?limit=100"
	for range min(999, many/100-1) {
		must(v.expect(200, "GET", next, token, ""))
		next = v.next
	}
	_, cursor, _ := strings.Cut(next, "cursor=")
	cursor, _, _ = strings.Cut(cursor, "&")
	of := series{}
	for range b.rounds {
		b.await()
		for name, query := range map[string]string{"page 1": "", "page 1000": "?cursor=" + cursor} {
			took, answered, asked := listing(chromium, "http://"+s.addr+"/console/users"+query,
				strings.TrimPrefix(token, "x-auth: "))
			if len(asked) != 1 || strings.Contains(asked[0], "count=") {
				must(fmt.Errorf("%s took the requests %q, want one that counts nothing", name, asked))
			}
			of.add(name, took)
			of.add(name+", the answer", answered)
		}
		last := func(name string) float64 { return of[name][len(of[name])-1] }
		of.add("grown", last("page 1000")/last("page 1"))
	}
	r := &b.report
	r.line(p.name+": page 1", "ms", of["page 1"], atMost(300))
	r.line(p.name+": page 1000", "ms", of["page 1000"], atMost(300))
	r.line(p.name+": page 1, of it until the answer", "ms", of["page 1, the answer"], bar{})
	r.line(p.name+": page 1000, of it until the answer", "ms", of["page 1000, the answer"], bar{})
	r.line(p.name+": page 1000, in first ones", "×", of["grown"], atMost(1.25))
}

// shown resolves with the milliseconds from the request of a list to its rows, with those to its answer, and with the
// requested lists.
const shown = `new Promise((resolve) => {
	const look = () => {
		const asked = performance.getEntriesByType('resource').filter((r) => r.name.includes('/admin/list-'));
		if (document.querySelectorAll('[data-testid="row"]').length < 100 || asked.length === 0)
			return requestAnimationFrame(look);
		setTimeout(() => resolve([performance.now() - asked[0].startTime, asked[0].duration,
			...asked.map((r) => r.name)].map(String)));
	};
	look();
})`

// listing opens a list in a fresh tab, with the session of another one.
func listing(chromium context.Context, url, token string) (took, answered float64, asked []string) {
	tab, leave := fresh(chromium)
	defer leave()
	must(chromedp.Do(tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`[data-testid="email"]`))))
	need(evaluated[bool](tab, fmt.Sprintf(`(() => {
		const at = document.querySelector('meta[name="castellan-tokens"]').content;
		new SharedWorker(at, { type: 'module', name: 'castellan' }).port.postMessage({ token: %q });
		return true; })()`, token)))
	found := need(evaluated[[]string](tab, shown))
	need(fmt.Sscan(found[0]+" "+found[1], &took, &answered))
	return took, answered, found[2:]
}
