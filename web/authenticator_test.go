package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/intent"
	"castellan/domain/kit/storetest"
	"castellan/web/webtest"
)

// pocket is the view of a small phone.
var pocket = webtest.View{Width: 360, Height: 740, Phone: true}

// The authenticator on a small phone, in one browser. Each test has its own service, so its own origin and device.
func TestAuthenticator(t *testing.T) {
	tab := webtest.Browser(t)
	tab.View(pocket)
	t.Run("register", func(t *testing.T) { registersWithItsOwnKey(t, tab.For(t)) })
	t.Run("web push", func(t *testing.T) { registersForPushes(t, tab.For(t)) })
	t.Run("approve with number matching", func(t *testing.T) { approvesByNumber(t, tab.For(t)) })
	t.Run("deny", func(t *testing.T) { denies(t, tab.For(t)) })
	t.Run("this was not me", func(t *testing.T) { raisesAlarm(t, tab.For(t)) })
	t.Run("expiry", func(t *testing.T) { requestExpires(t, tab.For(t)) })
	t.Run("answered elsewhere", func(t *testing.T) { answeredElsewhere(t, tab.For(t)) })
	t.Run("offline and back", func(t *testing.T) { offlineAndBack(t, tab.For(t)) })
	t.Run("removed and forgotten", func(t *testing.T) { removedAndForgotten(t, tab.For(t)) })
	t.Run("without barriers", func(t *testing.T) { pocketWithoutBarriers(t, tab.For(t)) })
}

func openAuthenticator(tab *webtest.Tab, p *phone) {
	tab.Open(p.URL + "/authenticator")
	tab.Until("document.body.dataset.ready === 'true'")
}

// logIn logs in at the page with the code of the SMS, up to the registration.
func logIn(tab *webtest.Tab, p *phone) {
	tab.Type("#phone-number", demoPhone)
	tab.Type("#password", demoPassword)
	tab.Click("#login-submit")
	tab.See(`[data-testid="code-SMS"]`)
	p.service.mu.Lock()
	code := p.methods[1].code
	p.service.mu.Unlock()
	tab.Type(`[data-testid="code-SMS"]`, code)
	tab.Click(`[data-testid="verify-SMS"]`)
	tab.See("#register-step")
}

// newDevice opens the page and registers it.
func newDevice(t *testing.T, tab *webtest.Tab) *phone {
	p := newPhone(t)
	openAuthenticator(tab, p)
	logIn(tab, p)
	tab.Click("#register")
	tab.See("#home-step")
	return p
}

// noMorePolling ends all timers of the page: what it learns from now on has another cause.
func noMorePolling(tab *webtest.Tab) {
	webtest.Value[bool](tab, `(() => { const last = setTimeout(() => {}, 0); window.setTimeout = () => 0;
		for (let id = 0; id <= last; id++) clearTimeout(id); return true; })()`)
}

// askNow makes the page ask at once, as at the return of the network.
func askNow(tab *webtest.Tab) { webtest.Value[bool](tab, "dispatchEvent(new Event('online'))") }

// openRequest opens the first request, which need not be known to the page yet.
func openRequest(tab *webtest.Tab) {
	askNow(tab)
	tab.Click(`[data-testid="request"]`)
	tab.See("#approval-title")
}

func noticed(tab *webtest.Tab, want string) {
	tab.Until(fmt.Sprintf("!document.getElementById('notice').hidden && "+
		"document.getElementById('notice').textContent.includes(%q)", want))
}

// focused waits until an element has the focus.
func focused(tab *webtest.Tab, id string) {
	tab.Until(fmt.Sprintf("document.activeElement?.id === %q", id))
}

// The key cannot be exported, the session that registered it has ended, and the device outlives the page.
func registersWithItsOwnKey(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	noticed(tab, "This browser is registered")
	focused(tab, "home-title")
	key := webtest.Value[string](tab, `import('/static/castellan-device.js').then(async ({ loadDevice }) => {
		const { keys: { privateKey } } = await loadDevice();
		const exported = await crypto.subtle.exportKey('jwk', privateKey).then(() => 'exported', (e) => e.name);
		return privateKey.extractable + ' ' + exported; })`)
	storetest.Equal(t, key, "false InvalidAccessError", "the private key is")
	soon(t, "the session ends", func() bool { p.service.mu.Lock(); defer p.service.mu.Unlock(); return p.loggedOut })
	if p.target != nil {
		t.Errorf("without permission the device has the push target %v", p.target)
	}
	tab.Reload()
	tab.Until("document.body.dataset.ready === 'true'")
	tab.See("#home-step")
	if got := webtest.Value[string](tab, "document.getElementById('device-id').textContent"); got != deviceID {
		t.Errorf("the device is %q", got)
	}
	manifest := webtest.Value[string](tab, `fetch(document.querySelector('link[rel=manifest]').href)
		.then(async (r) => { const m = await r.json(); const at = (u) => new URL(u, r.url).pathname;
			return [m.display, at(m.start_url), at(m.scope), at(m.icons[0].src)].join(' '); })`)
	if manifest != "standalone /authenticator /authenticator /static/icon.svg" {
		t.Errorf("the manifest says %s", manifest)
	}
	if reasons := tab.InstallErrors(); len(reasons) != 0 {
		t.Errorf("the browser cannot install the page: %v", reasons)
	}
}

// With the user's permission the device registers its subscription. A push shows a notification in the language of the
// page, and the page asks at once.
func registersForPushes(t *testing.T, tab *webtest.Tab) {
	p := newPhone(t)
	tab.Grant(p.URL, "notifications")
	openAuthenticator(tab, p)
	tab.Choose("#language", "tr")
	webtest.Value[bool](tab, `(() => { PushManager.prototype.subscribe = async (options) => ({ toJSON: () => ({
		endpoint: 'https://push.test/' + options.applicationServerKey.length + options.userVisibleOnly,
		keys: { p256dh: 'p', auth: 'a' } }) }); return true; })()`)
	logIn(tab, p)
	tab.Click("#register")
	tab.See("#home-step")
	p.set(func() {
		keys, _ := p.target["keys"].(map[string]any)
		if p.target["type"] != "webpush" || p.target["endpoint"] != "https://push.test/87true" || keys["p256dh"] != "p" {
			t.Errorf("the push target is %v", p.target)
		}
	})
	tab.Until("navigator.serviceWorker.controller !== null")
	webtest.Value[bool](tab, `(() => {
		new BroadcastChannel('notifications').onmessage = ({ data }) => { window.notified = data; };
		window.gone = [];
		ServiceWorkerRegistration.prototype.getNotifications = async ({ tag }) => [{ close: () => gone.push(tag) }];
		return true; })()`)
	noMorePolling(tab)
	p.withdraw("ch-push", "")
	tab.Push(p.URL, `{"challengeId":"ch-push","action":"WITHDRAW","expire":120}`)
	tab.See(`[data-testid="request"]`)
	tab.Until("window.notified === 'ch-push tr Bir istek bekliyor'")
	webtest.Value[bool](tab, `(navigator.serviceWorker.dispatchEvent(new MessageEvent('message',
		{ data: { type: 'open', challengeId: 'ch-push' } })), true)`)
	tab.See("#approval-title")
	tab.Click(`[data-testid="deny"]`)
	tab.See("#home-step")
	tab.Until("window.gone.join() === 'ch-push'")
}

// The intent is shown with all rows, the address in groups of four that read and copy as the complete address. The
// approval by keyboard alone repeats the number, and signs what was shown.
func approvesByNumber(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.withdraw("ch-2", "42")
	tab.See(`[data-testid="request"]`)
	contains(t, "the live region", webtest.Value[string](tab, "document.getElementById('announcer').textContent"),
		"One request")
	keys := tab.Keyboard()
	keys.To(`[data-testid="request"]`)
	keys.Press(webtest.Enter)
	focused(tab, "approval-title")
	storetest.Equal(t, tab.Text("#approval-title"), "Withdraw 1.5 BTC", "the title is")
	rows := webtest.Value[[]string](tab, `[...document.querySelectorAll('[data-testid="rows"] > div')]
		.map((row) => row.dataset.row + '=' + [...row.querySelector('dd').childNodes]
			.filter((n) => n.tagName !== 'SMALL').map((n) => n.textContent).join(''))`)
	want := []string{"amount=1.5 BTC (Bitcoin)", "address=" + address, "time=2026-11-26T15:00:00Z", "ip=203.0.113.7"}
	if !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
	groups := webtest.Value[[]string](tab, `[...document.querySelectorAll('.groups > span')].map((s) => s.textContent)`)
	if len(groups) != (len(address)+3)/4 || groups[0] != "bc1q" || strings.Join(groups, "") != address {
		t.Errorf("the address is shown as %q", groups)
	}
	size := webtest.Value[float64](tab, `parseFloat(getComputedStyle(document.querySelector('.groups')).fontSize)`)
	if size < 18 {
		t.Errorf("the address has %v pixels", size)
	}
	keys.Fill("#number", "41")
	keys.Press(webtest.Enter)
	tab.Until(`document.getElementById('answer-note').textContent.includes('4 attempts left')`)
	keys.Fill("#number", "٤٢") // digits of any script
	keys.Press(webtest.Enter)
	noticed(tab, "Approved")
	focused(tab, "home-title")
	if answers, alarms, _ := p.heard(); !slices.Equal(answers, []string{"ch-2 APPROVED:42"}) || len(alarms) != 0 {
		t.Errorf("answers %v, alarms %v", answers, alarms)
	}
	tab.Until("document.getElementById('requests').childElementCount === 0")
}

// A denial answers the request that is open, and no other.
func denies(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.withdraw("ch-a", "")
	p.ask("ch-b", "Log in", "", intent.Row{Key: "ip", Label: "IP address", Value: "203.0.113.7"})
	askNow(tab)
	tab.Until(`document.querySelectorAll('[data-testid="request"]').length === 2`)
	tab.Click(`[data-request^="ch-b"]`)
	tab.See("#approval-title")
	tab.Click("#approval-back")
	tab.See("#home-step")
	tab.Click(`[data-request^="ch-b"]`)
	tab.Click(`[data-testid="deny"]`)
	noticed(tab, "Denied")
	if answers, _, _ := p.heard(); !slices.Equal(answers, []string{"ch-b DENIED"}) {
		t.Errorf("answers %v", answers)
	}
	tab.See(`[data-request^="ch-a"]`)
	tab.Until(`document.querySelectorAll('[data-testid="request"]').length === 1`)
}

// "This was not me" asks once more; then it denies and raises the alarm. It does so too if another device was faster.
func raisesAlarm(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.withdraw("ch-x", "")
	openRequest(tab)
	tab.Click(`[data-testid="not-me"]`)
	focused(tab, "confirm-no") // Enter alone ends no session
	tab.NoBarriers("confirm")
	tab.Click("#confirm-no")
	tab.Click(`[data-testid="not-me"]`)
	tab.Click("#confirm-yes")
	noticed(tab, "All sessions of your account have ended")
	answers, alarms, _ := p.heard()
	if !slices.Equal(answers, []string{"ch-x DENIED"}) || !slices.Equal(alarms, []string{"ch-x"}) {
		t.Errorf("answers %v, alarms %v", answers, alarms)
	}

	p.withdraw("ch-y", "")
	openRequest(tab)
	tab.Click(`[data-testid="not-me"]`)
	p.set(func() { p.pending = nil })
	tab.Click("#confirm-yes")
	soon(t, "the alarm", func() bool { _, alarms, _ := p.heard(); return slices.Equal(alarms, []string{"ch-x", "ch-y"}) })
}

func requestExpires(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.withdraw("ch-1", "")
	openRequest(tab)
	tab.Until(`/^(2:00|1:5\d)$/.test(document.querySelector('#approval .clock').textContent)`)
	later(tab, p.service, 121*time.Second)
	noticed(tab, "expired")
	tab.See("#home-step")
	if answers, _, _ := p.heard(); len(answers) != 0 {
		t.Errorf("answers %v", answers)
	}
}

// A request that is answered on another device while it is open is left with the reason, and so is one whose answer
// comes too late.
func answeredElsewhere(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.withdraw("ch-1", "")
	openRequest(tab)
	p.set(func() { p.pending = nil })
	askNow(tab)
	noticed(tab, "answered elsewhere")
	p.withdraw("ch-2", "")
	openRequest(tab)
	noMorePolling(tab)
	p.set(func() { p.pending = nil })
	tab.Click(`[data-testid="approve"]`)
	tab.Until("document.getElementById('error').dataset.code === 'CHALLENGE_CLOSED'")
	tab.See("#home-step")
	if answers, _, _ := p.heard(); len(answers) != 0 {
		t.Errorf("answers %v", answers)
	}
}

// Without a network the page says so, answers nothing, and asks at once when the network is back. It starts without the
// service, from the files that the service worker keeps.
func offlineAndBack(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	tab.Until("navigator.serviceWorker.controller !== null")
	p.withdraw("ch-1", "")
	openRequest(tab)
	tab.Offline(true)
	tab.Until("document.getElementById('offline').textContent !== ''")
	tab.Click(`[data-testid="approve"]`)
	tab.Until(`document.getElementById('answer-note').textContent !== ''`)
	tab.See("#approval-title") // the request stays open for another try
	tab.Offline(false)
	tab.Until("document.getElementById('offline').textContent === ''")
	tab.Click(`[data-testid="approve"]`)
	noticed(tab, "Approved")
	if answers, _, _ := p.heard(); !slices.Equal(answers, []string{"ch-1 APPROVED"}) {
		t.Errorf("answers %v", answers)
	}

	p.set(func() { p.down = true })
	tab.Reload()
	tab.Until("document.body.dataset.ready === 'true'")
	tab.See("#home-step")
	tab.Until("document.getElementById('offline').textContent.includes('No connection')")
	p.withdraw("ch-2", "")
	p.set(func() { p.down = false })
	askNow(tab)
	tab.See(`[data-testid="request"]`)
	tab.Until("document.getElementById('offline').textContent === ''")
}

// A device that was removed from the account says so and can be registered again. Forgetting deletes the key.
func removedAndForgotten(t *testing.T, tab *webtest.Tab) {
	p := newDevice(t, tab)
	p.set(func() { p.removed = true })
	askNow(tab)
	tab.See("#gone-step")
	focused(tab, "gone-title")
	tab.Click("#again")
	logIn(tab, p)
	tab.Click("#register")
	tab.See("#home-step")
	tab.Click(".about summary")
	tab.Click("#forget")
	tab.Click("#confirm-yes")
	tab.See("#login-step")
	noticed(tab, "key is deleted")
	if webtest.Value[bool](tab, `import('/static/castellan-device.js').then((m) => m.loadDevice()).then(Boolean)`) {
		t.Error("the key is still there")
	}
}

// Every step has no barrier in light and dark, in three languages, and fits on the phone.
func pocketWithoutBarriers(t *testing.T, tab *webtest.Tab) {
	p := newPhone(t)
	openAuthenticator(tab, p)
	everyPocket(t, tab, "auth-login")
	logIn(tab, p)
	everyPocket(t, tab, "auth-register")
	tab.Click("#register")
	tab.See("#home-step")
	p.withdraw("ch-1", "42")
	askNow(tab)
	tab.See(`[data-testid="request"]`)
	tab.Click(".about summary")
	everyPocket(t, tab, "auth-home")
	openRequest(tab)
	tab.Type("#number", "17")
	everyPocket(t, tab, "auth-approval")
	if typed := webtest.Value[string](tab, "document.getElementById('number').value"); typed != "17" {
		t.Errorf("after the change of language the number is %q", typed)
	}
	for language, want := range map[string]string{"en": "Approve", "tr": "Onayla", "ar": "موافقة"} {
		tab.Choose("#language", language)
		storetest.Equal(t, tab.Text(`[data-testid="approve"]`), want, language, "the button says")
	}
	tab.Choose("#language", "en")
}

func everyPocket(t *testing.T, tab *webtest.Tab, step string) {
	t.Helper()
	shot := shotsOf(t, tab)
	for _, language := range []string{"ar", "tr", "en"} {
		view := pocket
		view.Language = language
		tab.View(view)
		noBarriers(t, tab, step+"-"+language)
		shot(step + "-" + language)
	}
	view := pocket
	view.Dark = true
	tab.View(view)
	tab.NoColourBarriers(step + "-dark")
	shot(step + "-dark")
	tab.View(pocket)
}
