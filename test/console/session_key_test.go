package console

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// stored is what IndexedDB has of the session: "none", or whether its keys can be read and whether a token can.
const stored = `new Promise((told, failed) => {
	const opening = indexedDB.open('castellan-session', 1);
	opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
	opening.onerror = () => failed(opening.error);
	opening.onsuccess = () => {
		const reading = opening.result.transaction('keys').objectStore('keys').getAll();
		reading.onsuccess = () => {
			opening.result.close();
			if (!reading.result.length) return told('none');
			told(reading.result.map(({ keys, seal, ...rest }) => [keys.privateKey.extractable, seal.extractable,
				(JSON.stringify(rest) + String.fromCharCode(...new Uint8Array(rest.box))).includes('eyJ')].join()).join(' '));
		};
	};
})`

// keeps waits until the browser has this of the session.
func keeps(t *testing.T, tab *webtest.Tab, want string) {
	t.Helper()
	var got string
	blackbox.Until(t, blackbox.Within(5), "the browser keeps "+want, func() bool {
		got = webtest.Value[string](tab, stored)
		return got == want
	})
}

// tokenEnd returns when the last token of the only session ends: an idle session ends an hour later.
func tokenEnd(t *testing.T, s *blackbox.Site) time.Time {
	t.Helper()
	ms := storetest.Value(strconv.ParseInt(s.Text("SELECT max(expires_at) FROM session"), 10, 64))(t)
	return time.UnixMilli(ms).Add(-time.Hour)
}

// outlived waits until the last token has ended.
func outlived(t *testing.T, s *blackbox.Site) {
	t.Helper()
	blackbox.Until(t, blackbox.Within(5), "the token ended", func() bool { return time.Now().After(tokenEnd(t, s)) })
}

// The session of the console is bound to a key of the browser that cannot be read. It outlives its tokens and a reload,
// all tabs have it, and the logout deletes the key. Its end is shown.
func TestConsoleRenewsItsSession(t *testing.T) {
	t.Parallel()
	for _, bind := range []string{"renewal", "requests"} {
		t.Run(bind, func(t *testing.T) {
			t.Parallel()
			s := blackbox.NewSite(t, "sqlite")
			n := s.Start("TOKENS_X_AUTH_TTL=10s", "SESSIONS_BIND="+bind)
			boss := s.Seeded("admin")
			tab := webtest.Browser(t)
			consoleLogin(t, tab, n, boss, "/users")
			tab.See(mark("row"))
			keeps(t, tab, "false,false,false")
			tab.Reload()
			tab.See(mark("row"))
			first := tokenEnd(t, s)
			blackbox.Until(t, blackbox.Within(10), "renewed twice by the page itself", func() bool {
				return tokenEnd(t, s).After(first.Add(10 * time.Second))
			})
			tab.Click(`main [aria-label="Refresh"]`)
			tab.See(mark("row"))
			release := hold(tab) // a machine that stalls uses a token that has expired
			outlived(t, s)
			tab.Click(mark("nav-/me"))
			tab.Until(`document.querySelector('[data-screen="/me"]') && document.querySelector('[data-testid="row"]')`)
			release()
			if webtest.Value[bool](tab, `!!document.querySelector('[data-testid="lock"]')`) {
				t.Error("the session ends with its token")
			}
			tab.Click(mark("chip"))
			tab.Until(`Number(document.querySelector('[data-testid="left"]')?.dataset.minutes) > 700`)
			tab.Press("\x1b")
			second := tab.Another()
			second.Open(n.URL + "/console/me")
			second.See(mark("row"))
			if second.Until(`!document.querySelector('[data-testid="lock"]')`); s.Count("session") != 1 {
				t.Errorf("%d sessions", s.Count("session"))
			}
			fromChip(second, "logout")
			second.See(mark("email"))
			tab.Front().See(mark("email"))
			keeps(t, tab, "none")
			tab.Reload()
			tab.See(mark("email"))
			blackbox.Until(t, blackbox.Within(5), "no session after the logout", func() bool {
				return s.Count("session WHERE ended_at = 0") == 0
			})
		})
	}
}

// The demonstration page keeps its session in the same way.
func TestDemoPageKeepsItsSession(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start("TOKENS_X_AUTH_TTL=10s")
	demo := s.Seeded("user")
	tab := webtest.Browser(t)
	const inside = `document.body.dataset.ready && document.body.dataset.step === 'session'`
	tab.Open(n.URL + "/")
	tab.Login(demo.Country, demo.Phone, demo.Password)
	tab.AnswerByOutbox()
	tab.Until(inside)
	keeps(t, tab, "false,false,false")
	tab.Reload()
	tab.Until(inside)
	outlived(t, s)
	second := tab.Another() // after the end of the token
	second.Open(n.URL + "/")
	second.Until(inside)
	second.Click("#logout")
	second.Until(`document.body.dataset.step === 'login'`)
	keeps(t, second, "none")
	second.Reload()
	second.Until(`document.body.dataset.ready && document.body.dataset.step !== 'session'`)
	blackbox.Until(t, blackbox.Within(5), "no session after the logout", func() bool {
		return s.Count("session WHERE ended_at = 0") == 0
	})
}

// The demonstration page and the console each have their browser remembered at a login. The next login needs the
// password only, until the owner forgets the browser in the console (D-AUTH-17).
func TestRememberedBrowserOnThePages(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start()
	demo := s.Seeded("user")
	blackbox.Policy(t, n, blackbox.Admin(t, s, n), "LOGIN", 1, `[["SMS"],["MAIL"]]`, `,"remember":30`)

	tab := webtest.Browser(t)
	tab.Open(n.URL + "/")
	login := func() {
		t.Helper()
		tab.Login(demo.Country, demo.Phone, demo.Password)
	}
	logout := func() {
		t.Helper()
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
	}
	login()
	tab.AnswerByOutbox()
	tab.Until(`document.body.dataset.step === 'session'`)
	logout()
	login()
	tab.See("#remember") // a login without the tick remembers nothing
	barriers(t, tab, "a challenge that may remember the browser")
	tab.Click("#remember")
	tab.AnswerByOutbox()
	tab.Until(`document.body.dataset.step === 'session'`)
	for range 2 {
		logout()
		login()
		tab.Until(`document.body.dataset.step === 'session'`)
	}

	const list = `[data-path="/auth/remembered"] `
	enter := func() {
		t.Helper()
		tab.Type(mark("email"), demo.Mail)
		tab.Type(mark("password"), demo.Password)
		tab.Click(mark("login"))
	}
	answer := func() {
		t.Helper()
		tab.See(mark("remember"))
		tab.Click(mark("remember"))
		tab.Type(`[data-testid="code-MAIL"] input`, n.Code(t, demo, "MAIL"))
	}
	rows := func(want int) {
		t.Helper()
		tab.Until(fmt.Sprintf(`document.querySelectorAll('%s[data-testid="row"]').length === %d`, list, want))
	}
	again := func() {
		t.Helper()
		fromChip(tab, "logout")
		tab.See(mark("email"))
		enter()
	}
	tab.Open(n.URL + "/console/me")
	enter()
	answer()
	rows(2)
	again()
	rows(2)
	tab.Click(list + `thead input[type="checkbox"]`)
	tab.Click(mark("bulk-/auth/remembered"))
	tab.Click(mark("bulk-send"))
	rows(0)
	again()
	answer()
	rows(1)
	s.Has(3, "audit WHERE action = $1", "REMEMBER")
}
