package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
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
		storetest.Equal(t, tab.Step(), "challenge", "an unverified user approved")
		key.Verified(true)
		tab.Click(`[data-testid="passkey-PUSH"]`)
		tab.Until(`document.body.dataset.step === 'session'`)

		// Alone, in the autofill: the authenticator chooses as soon as the login is shown.
		blackbox.Policy(t, n, boss, "LOGIN", 1, `[["PUSH"],["SMS"]]`, `,"passkeyAlone":true`)
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
		blackbox.Policy(t, n, boss, "TOTP_SETUP", 1, `[["PUSH"],["SMS"]]`, `,"intent":"required"`)
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

// In production mode the log names the command and no link. The link of the command makes the first administrator in
// the browser, by a passkey and by an authenticator; then it is void, and so is a new one.
func TestSetupLinkInTheBrowser(t *testing.T) {
	for name, factor := range map[string]func(t *testing.T, tab *webtest.Tab){
		"passkey": byPasskey, "authenticator": byAuthenticator} {
		t.Run(name, func(t *testing.T) {
			blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
				n := blackbox.Patient(s.Production()).Start()
				made := s.Command("", "setup-link")
				link, err := url.Parse(strings.TrimSpace(made.Out))
				if err != nil || made.Code != 0 || link.Path != "/setup" || len(link.Fragment) != 26 {
					t.Fatalf("setup-link: exit %d, %q %s", made.Code, made.Out, made.ErrOut)
				}
				link.Host = strings.Replace(strings.TrimPrefix(n.URL, "http://"), "127.0.0.1", "localhost", 1)
				tab := webtest.Browser(t)
				tab.Authenticator()
				tab.Open(link.String())
				tab.Until(`document.body.dataset.step === 'details' && location.hash === ''`)
				tab.Type("#email", "boss@example.com")
				tab.Type("#phone-number", "5321234567")
				tab.Type("#password", "short")
				tab.Click("#begin")
				tab.Until(`document.getElementById('password').getAttribute('aria-invalid') === 'true'`)
				for _, language := range []string{"tr", "ar", "en"} {
					tab.Choose("#language", language)
					tab.NoBarriers("details " + language)
				}
				tab.Type("#password", "tall-lantern-orchard")
				factor(t, tab)
				tab.Until(`document.body.dataset.step === 'done'`)
				s.Has(1, "user_role WHERE role = $1", "admin")
				// The same link again, in another tab.
				tab.Open("about:blank")
				tab.Open(link.String())
				tab.Until(`document.body.dataset.step === 'details'`)
				tab.Type("#email", "other@example.com")
				tab.Type("#phone-number", "5327654321")
				tab.Type("#password", "tall-lantern-orchard")
				tab.Click("#begin")
				tab.Until(`document.body.dataset.step === 'absent'`)
				if again := s.Command("", "setup-link"); again.Code != 1 || again.Out != "" {
					t.Errorf("a second link: exit %d, %s%s", again.Code, again.Out, again.ErrOut)
				}
				if log := n.Log(); !strings.Contains(log, "castellan setup-link") || strings.Contains(log, link.Fragment) {
					t.Error("the log must name the command and never the link")
				}
			})
		})
	}
}

func byPasskey(_ *testing.T, tab *webtest.Tab) {
	tab.Click("#begin")
	tab.Until(`document.body.dataset.step === 'passkey'`)
	tab.Click("#create")
}

func byAuthenticator(t *testing.T, tab *webtest.Tab) {
	tab.Click(`.switch label:last-child`)
	tab.Click("#begin")
	tab.Until(`document.body.dataset.step === 'totp' && document.getElementById('qr').naturalWidth > 0`)
	tab.NoBarriers("authenticator")
	secret := storetest.Value(totp.ParseSecret(tab.Text(`[data-testid="secret"]`)))(t)
	tab.Type("#value", "000000")
	tab.Click("#finish")
	tab.Until(`document.getElementById('error').dataset.code === 'OTP_INVALID'`)
	tab.Type("#value", totp.CodeAt(secret, totp.StepAt(time.Now())))
	tab.Click("#finish")
}
