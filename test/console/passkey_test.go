package console

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/test/harness"
	"castellan/web/webtest"
)

// Chromium's virtual authenticator registers a passkey, approves with it, and logs in with it alone: by the button and
// in the autofill of the login (D-AUTH-18).
func TestPasskeyInTheBrowser(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := harness.Patient(s).Start()
		demo, boss := s.Seeded("user"), harness.Admin(t, s, n)
		tab := webtest.Browser(t)
		present := tab.Authenticator()
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
		present(false)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
		tab.Login(demo.Country, demo.Phone, demo.Password)
		tab.Until(`document.body.dataset.step === 'challenge'`)
		present(true)
		tab.Click(`[data-testid="passkey-PUSH"]`)
		tab.Until(`document.body.dataset.step === 'session'`)

		// Alone, in the autofill: the authenticator chooses as soon as the login is shown.
		n.Ok(t, "POST", "/admin/system/mfa/policies/common", `{"actionCode":"LOGIN","name":"alone","expireAt":0,`+
			`"required":1,"passkeyAlone":true,"methods":[["PUSH"],["SMS"]]}`, boss)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'session' &&
			document.querySelector('#claims').innerText.includes('["hwk","mfa"]')`)

		// Alone, by the button.
		present(false)
		tab.Click("#logout")
		tab.Until(`document.body.dataset.step === 'login'`)
		tab.Click("#login-passkey") // takes the place of the autofill
		present(true)
		tab.Until(`document.body.dataset.step === 'session'`)

		// The console logs in by the autofill too, and lists the passkey.
		tab.Open(at + "/console/me")
		tab.See(mark("passkey-add"))
		tab.Until(`document.querySelector('main').innerText.includes('Passkey')`)
	})
}
