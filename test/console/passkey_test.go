package console

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// Chromium's virtual authenticator registers a passkey, approves with it, and logs in with it alone: by the button and
// in the autofill of the login. It also approves an action of the session. An unverified user, another origin and a
// counter that falls are refused (D-AUTH-18).
func TestPasskeyInTheBrowser(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo, boss := s.Seeded("user"), blackbox.Admin(t, s, n)
		tab := webtest.Browser(t)
		key := tab.Authenticator()
		at := strings.Replace(n.URL, "127.0.0.1", "localhost", 1) // an address is no domain
		tab.Open(at + "/")
		tab.Login(demo.Country, demo.Phone, demo.Password)
		tab.AnswerByOutbox()
		tab.Until(`document.body.dataset.step === 'session'`)
		tab.Click("#passkey-add")
		tab.Until(`document.body.dataset.step === 'challenge'`)
		tab.AnswerByOutbox()
		tab.Until(`document.body.dataset.step === 'session' && !document.querySelector('#notice').hidden`)

		// With the password, the passkey approves.
		key.Present(false)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
		tab.Login(demo.Country, demo.Phone, demo.Password)
		tab.Until(`document.body.dataset.step === 'challenge'`)
		key.Present(true)
		key.Verified(false)
		tab.Click(`[data-testid="passkey-PUSH"]`)
		tab.Until(`!document.querySelector('[data-testid="passkey-PUSH"]').disabled`)
		if tab.Step() != "challenge" {
			t.Error("an unverified user approved")
		}
		key.Verified(true)
		tab.Click(`[data-testid="passkey-PUSH"]`)
		tab.Until(`document.body.dataset.step === 'session'`)

		// Alone, in the autofill: the authenticator chooses as soon as the login is shown.
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", `{"actionCode":"LOGIN","name":"alone","expireAt":0,`+
			`"required":1,"passkeyAlone":true,"methods":[["PUSH"],["SMS"]]}`, boss)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'session' &&
			document.querySelector('#claims').innerText.includes('["hwk","mfa"]')`)

		// Alone, by the button, where the browser has no autofill.
		webtest.Value[bool](tab, `(PublicKeyCredential.isConditionalMediationAvailable = async () => false, true)`)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
		tab.Click("#login-passkey")
		tab.Until(`document.body.dataset.step === 'session'`)

		// The console logs in by the autofill too, and lists the passkey.
		tab.Open(at + "/console/me")
		tab.See(mark("passkey-add"))
		tab.Until(`document.querySelector('main').innerText.includes('Passkey')`)

		// An action of the session, with the intent that it signs.
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", `{"actionCode":"TOTP_SETUP","name":"signed","expireAt":0,`+
			`"required":1,"intent":"required","methods":[["PUSH"],["SMS"]]}`, boss)
		tab.Click(mark("totp-setup"))
		tab.Click(mark("passkey-approve"))
		tab.Until(`document.querySelector('main [role="alert"] .id code')?.innerText`)

		// A copied authenticator, whose counter is behind.
		tab.Open(at + "/")
		tab.Until(`document.body.dataset.step === 'session'`)
		key.Rewind(1)
		tab.Click("#logout")
		tab.Until(`document.querySelector('#error:not([hidden])')?.innerText.includes('INVALID_CREDENTIALS')`)
		if got := s.Count("audit WHERE action = $1", "PASSKEY_COUNTER"); got == 0 {
			t.Errorf("%d alarms of the counter", got)
		}

		// Another origin: the page offers no passkey, and the code is still accepted.
		tab.Open(n.URL + "/")
		tab.Login(demo.Country, demo.Phone, demo.Password)
		tab.Until(`document.body.dataset.step === 'challenge'`)
		tab.Until(`!document.querySelector('[data-testid="passkey-PUSH"]')`)
		tab.AnswerByOutbox()
		tab.Until(`document.body.dataset.step === 'session'`)
	})
}
