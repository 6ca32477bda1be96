package webtest

import (
	"fmt"
	"strings"
)

// WalkDevice makes the browser a device at the page /authenticator, in a tab of its own. It approves and denies logins
// of the demonstration page in that tab, and in the frame beside the demonstration page. ask is called before
// the login with number matching, and remove when the account shall lose the device. It begins and ends logged in.
func (tab *Tab) WalkDevice(baseURL string, who Person, ask, remove func()) {
	t := tab.t
	t.Helper()
	phone := tab.Another().Front()
	phone.View(View{Width: 360, Height: 740, Phone: true})
	phone.Open(strings.TrimSuffix(baseURL, "/") + "/authenticator")
	phone.Until("document.body.dataset.ready === 'true'")
	phone.Choose("#language", "en")
	phone.Shot(who, "device-1-login")
	phone.Type("#country-code", who.Country)
	phone.Type("#phone-number", who.Phone)
	phone.Type("#password", who.Password)
	phone.Click("#login-submit")
	phone.answerBySMS()
	phone.See("#register-step")
	phone.Shot(who, "device-2-register")
	phone.Click("#register")
	phone.answerBySMS()
	phone.See("#home-step")
	key := Value[string](phone, `import(new URL('static/castellan-device.js', document.baseURI)).then(async (page) => {
		const { keys: { privateKey } } = await page.loadDevice();
		const exported = await crypto.subtle.exportKey('jwk', privateKey).then(() => 'exported', (e) => e.name);
		return privateKey.extractable + ' ' + exported; })`)
	if key != "false InvalidAccessError" {
		t.Errorf("the private key is %s", key)
	}

	begin := func() {
		t.Helper()
		tab.Front().Login(who.Country, who.Phone, who.Password)
		tab.See(testID("method", "PUSH"))
	}
	open := func() {
		t.Helper()
		phone.Front().Click(`[data-testid="request"]`)
		phone.See("#approval-title")
	}
	tab.Front().Leave()
	begin()
	open()
	if rows := Value[int](phone, `document.querySelectorAll('[data-testid="rows"] dt').length`); rows < 2 {
		t.Errorf("the request shows %d rows", rows)
	}
	phone.Shot(who, "device-3-asked")
	phone.Click(`[data-testid="approve"]`)
	phone.See("#home-step")
	tab.Front().See("#session-step")
	tab.Until(logged("ACTION_COMPLETE", "socket"))

	tab.Visit(baseURL) // the device outlives the page, and is shown beside it
	const frame = "document.getElementById('device-frame').contentDocument"
	tab.Until(frame + "?.body?.dataset.step === 'home'")
	begin()
	for _, button := range []string{"request", "deny"} {
		tab.Until(fmt.Sprintf(`(() => { const b = %s.querySelector('[data-testid="%s"]'); b?.click(); return b; })()`,
			frame, button))
	}
	tab.See("#ended-step")
	if text := tab.Text("#ended-text"); !strings.Contains(text, "denied") {
		t.Errorf("the end says %q", text)
	}
	tab.Shot(who, "device-4-denied")
	tab.Click("#again")

	// A device whose clock is an hour off signs again with the nonce of the refusal.
	ask()
	phone.Front().Until("document.getElementById('requests').childElementCount === 0")
	Value[bool](phone, "((real) => { Date.now = () => real() - 3600000; return true; })(Date.now)")
	begin()
	number := tab.Text(testID("match", "PUSH"))
	open()
	phone.Type("#number", otherCode(number))
	phone.Click(`[data-testid="approve"]`)
	phone.Until(`document.querySelector('[data-testid="answer-note"]').textContent.includes('4 attempts left.')`)
	phone.Shot(who, "device-5-number")
	phone.Type("#number", number)
	phone.Click(`[data-testid="approve"]`)
	phone.See("#home-step")
	tab.Front().See("#session-step")

	remove()
	phone.Front().See("#gone-step")
	phone.Click("#again")
	phone.See("#login-step")
	phone.Shut()
	tab.Front()
}

// answerBySMS completes the challenge of a page that has no outbox beside it. Development mode has its own.
func (tab *Tab) answerBySMS() {
	tab.t.Helper()
	tab.See(testID("code", "SMS"))
	code := Value[string](tab, `fetch(new URL('dev/outbox?limit=20', document.baseURI)).then((r) => r.json())
		.then((all) => all.find((one) => one.channel === 'SMS').code)`)
	tab.Type(testID("code", "SMS"), code)
	tab.Click(testID("verify", "SMS"))
}
