package webtest

import "strings"

// WalkDevice makes the browser a device, and approves and denies logins with it, across a reload of the page. ask is
// called before the login with number matching, and remove when the account shall lose the device. It begins and ends
// logged in.
func (tab *Tab) WalkDevice(baseURL string, who Person, ask, remove func()) {
	t := tab.t
	t.Helper()
	const push = `[data-testid="push"]`
	tab.See("#enroll-card")
	tab.Shot(who, "device-1-before")
	tab.Click("#enroll")
	tab.See("#challenge-step")
	tab.AnswerByOutbox()
	tab.Told("This browser is a device now")
	tab.See("#device-pane")
	tab.Until("document.getElementById('enroll-card').hidden")
	tab.Shot(who, "device-2-enrolled")
	key := Value[string](tab, `import('/static/castellan-device.js').then(async ({ loadDevice }) => {
		const { keys: { privateKey } } = await loadDevice();
		const exported = await crypto.subtle.exportKey('jwk', privateKey).then(() => 'exported', (e) => e.name);
		return privateKey.extractable + ' ' + exported; })`)
	if key != "false InvalidAccessError" {
		t.Errorf("the private key is %s", key)
	}

	begin := func() {
		t.Helper()
		tab.Login(who.Country, who.Phone, who.Password)
		tab.See(testID("method", "PUSH"))
		tab.See(push)
	}
	tab.Leave()
	begin()
	if facts := Value[int](tab, "document.querySelectorAll('.push-facts dt').length"); facts < 2 {
		t.Errorf("the push tells %d facts", facts)
	}
	tab.Shot(who, "device-3-asked")
	tab.Click(push + ` [data-testid="approve"]`)
	tab.See("#session-step")
	tab.Until(logged("ACTION_COMPLETE", "socket"))
	tab.Until("document.querySelector('[data-testid=\"push\"]') === null")

	tab.Visit(baseURL) // the device outlives the page
	tab.See("#device-pane")
	begin()
	tab.Click(push + ` [data-testid="deny"]`)
	tab.See("#ended-step")
	if text := tab.Text("#ended-text"); !strings.Contains(text, "denied") {
		t.Errorf("the end says %q", text)
	}
	tab.Shot(who, "device-4-denied")
	tab.Click("#again")
	// A device whose clock is an hour off signs again with the nonce of the refusal.
	Value[bool](tab, "((real) => { window.realNow = real; Date.now = () => real() - 3600000; return true; })(Date.now)")
	tab.Click("#log-clear")
	tab.Click("#device-ask")
	tab.Until("document.getElementById('device-note').textContent === 'Nothing waits for this device.'")
	if asked := Value[int](tab,
		`document.querySelectorAll('[data-event="GET /auth/2fa/challenge/ongoing"]').length`); asked != 2 {
		t.Errorf("a device with a wrong clock asked %d times", asked)
	}
	Value[bool](tab, "(() => { Date.now = realNow; return true; })()")

	ask()
	begin()
	number := tab.Text(testID("match", "PUSH"))
	tab.Type(`[data-testid="push-number"]`, otherCode(number))
	tab.Click(push + ` [data-testid="approve"]`)
	tab.Until(`document.querySelector('[data-testid="push-note"]').textContent.includes('4 attempts left.')`)
	tab.Shot(who, "device-5-number")
	tab.Type(`[data-testid="push-number"]`, number)
	tab.Click(push + ` [data-testid="approve"]`)
	tab.See("#session-step")

	remove()
	tab.Click("#device-ask")
	tab.Until("document.getElementById('device-note').dataset.kind === 'bad'")
	tab.Click("#device-forget")
	tab.See("#enroll-card")
	if Value[bool](tab, "!document.getElementById('device-pane').hidden") {
		t.Error("a forgotten device is still there")
	}
}
