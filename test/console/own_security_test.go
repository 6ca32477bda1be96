package console

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// resetsPassword sets a forgotten password at the login. A refused password does not consume the token.
func (o *owner) resetsPassword() {
	o.Open(o.n.URL + "/console")
	o.Click(mark("forgot"))
	o.look("reset")
	o.Type(mark("country-code"), o.who.Country)
	o.Type(mark("phone"), o.who.Phone)
	o.Click(mark("reset-send"))
	for _, method := range []string{"SMS", "MAIL"} {
		o.See(mark("method-" + method))
		o.Type(`[data-testid="code-`+method+`"] input`, o.n.Code(o.t, o.who, method))
	}
	set := func(password string) {
		o.t.Helper()
		o.Type(mark("new-password"), password)
		o.Type(mark("new-again"), password)
		o.Click(mark("reset-send"))
	}
	set("short")
	o.Until(`document.querySelector('[data-testid="new-password"]').closest('.mantine-InputWrapper-root').innerText
		.includes('must have at least 8 characters')`)
	o.look("reset-refused")
	set(o.who.Password)
	o.Until(`document.querySelector('[data-testid="problem"]')?.innerText.includes('PASSWORD_REUSED')`)
	o.who.Password = "a-first-lantern-orchard"
	set(o.who.Password)
	o.See(mark("login"))
	o.look("reset-done")
}

func (o *owner) changesPassword(before string) {
	fresh := "another-lantern-orchard"
	fill := func(password string) {
		o.t.Helper()
		o.Type(mark("field-oldPassword"), o.who.Password)
		o.Type(mark("field-password"), password)
		o.Type(mark("field-passwordVerify"), password)
		o.Click(mark("send"))
	}
	o.rows(blackbox.SessionsPath, 2)
	o.Click(mark("write-/auth/password"))
	o.Type(mark("field-oldPassword"), "not the one")
	o.Type(mark("field-password"), fresh)
	o.Type(mark("field-passwordVerify"), fresh)
	o.Click(mark("send"))
	o.Until(oneDialog + `.innerText.includes('PASSWORD_WRONG')`)
	fill("short")
	o.Until(`document.querySelector('[data-testid="field-password"]').closest('.mantine-InputWrapper-root').innerText
		.includes('must have at least 8 characters')`)
	o.look("password-refused")
	fill(fresh)
	o.See(mark("challenge"))
	o.look("password-challenge")
	o.confirms()
	o.Until("!" + oneDialog)
	o.rows(blackbox.SessionsPath, 1)
	o.n.Do(o.t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": before}).Is(o.t, 401, "TOKEN_REVOKED")
	o.who.Password = fresh
}

func (o *owner) hasAuthenticator() {
	const secret = `document.querySelector('main [role="alert"] .id code')?.innerText`
	o.Click(mark("totp-setup"))
	o.confirms()
	o.Until(secret)
	text := webtest.Value[string](o.Tab, secret)
	o.Until(`document.querySelector('main [role="alert"] img').naturalWidth > 100`)
	codes := strings.Fields(webtest.Value[string](o.Tab, `document.querySelector('main [role="alert"] pre').innerText`))
	storetest.Equal(o.t, len(codes), 5, "recovery codes", codes)
	o.look("authenticator")
	o.printsCodes()
	app := blackbox.NewAuthenticator(o.t, text)
	const shut = `main [role="alert"] button[aria-label="Close"]`
	o.Click(shut)
	o.Until("!" + secret)
	for _, once := range append(codes, text) {
		if webtest.Value[bool](o.Tab, fmt.Sprintf("document.body.textContent.includes(%q)", once)) {
			o.t.Errorf("%s stays on the page", once)
		}
	}
	o.Click(mark("write-/auth/totp/recover"))
	o.Type(mark("field-recoveryCode"), "abcde-fghij")
	o.Click(mark("send"))
	o.Until(oneDialog + `.innerText.includes('RECOVERY_CODE_INVALID')`)
	o.Type(mark("field-recoveryCode"), codes[0])
	o.Click(mark("send"))
	o.Until(secret + " === '" + text + "'")
	o.Click(shut)
	o.Click(mark("write-/auth/totp/deactivate"))
	o.Click(mark("send"))
	o.Type(`[data-testid="code-TOTP"] input`, app.Next(o.t))
	o.Until("!" + oneDialog)
	o.See(mark("totp-setup"))
}

// printsCodes presses the button that prints the recovery codes; nothing else is printed.
func (o *owner) printsCodes() {
	webtest.Value[bool](o.Tab, "(window.print = () => { window.printed = true; }, true)")
	o.Click(mark("print-codes"))
	o.Until("window.printed")
	o.Media("print")
	const shown = `['main [role="alert"] pre', 'main [role="alert"] img', 'main h1', 'header', 'nav']
		.filter((part) => document.querySelector(part).checkVisibility({ visibilityProperty: true })).join(' ')`
	storetest.Equal(o.t, webtest.Value[string](o.Tab, shown), `main [role="alert"] pre`, "printed")
	o.Media("screen")
}

// endsSessions ends two at once; each request has an idempotency key of its own.
func (o *owner) endsSessions() {
	t := o.t
	others := []blackbox.Headers{o.n.Auth(t, o.who), o.n.Auth(t, o.who)}
	o.Click(fmt.Sprintf(`[data-path=%q] [aria-label="Refresh"]`, blackbox.SessionsPath))
	o.rows(blackbox.SessionsPath, 3)
	for i := range 3 {
		if one := fmt.Sprintf(`%s:nth-child(%d)`, row(blackbox.SessionsPath), i+1); webtest.Value[bool](o.Tab,
			fmt.Sprintf(`!document.querySelector(%q).innerText.toUpperCase().includes('THIS SESSION')`, one)) {
			o.Click(one + ` input[type="checkbox"]`)
		}
	}
	o.Click(mark("bulk-" + blackbox.SessionsPath))
	o.Click(mark("bulk-send"))
	o.rows(blackbox.SessionsPath, 1)
	for _, x := range others {
		o.n.Do(t, "GET", blackbox.SessionsPath, nil, x).Is(t, 401, "TOKEN_REVOKED")
	}
	if keys := webtest.Value[int](o.Tab, `new Set(heard.keys.filter((k, n) =>
		heard.asked[n] === 'DELETE /auth/sessions')).size`); keys != 2 {
		t.Errorf("two writes had %d keys", keys)
	}
	o.look("security")
	more := []blackbox.Headers{o.n.Auth(t, o.who), o.n.Auth(t, o.who)}
	o.Click(fmt.Sprintf(`[data-path=%q] [aria-label="Refresh"]`, blackbox.SessionsPath))
	o.rows(blackbox.SessionsPath, 3)
	o.Click(mark("end-others"))
	o.rows(blackbox.SessionsPath, 1)
	for _, x := range more {
		o.n.Do(t, "GET", blackbox.SessionsPath, nil, x).Is(t, 401, "TOKEN_REVOKED")
	}
}

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
