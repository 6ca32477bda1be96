package console

import (
	"fmt"
	"strings"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// resetsPassword sets a forgotten password at the login. A refused password does not consume the token.
func (o *owner) resetsPassword() {
	t := o.t
	t.Helper()
	o.Open(o.n.URL + "/console")
	o.Click(mark("forgot"))
	o.look("reset")
	o.Type(mark("country-code"), o.who.Country)
	o.Type(mark("phone"), o.who.Phone)
	o.Click(mark("reset-send"))
	for _, method := range []string{"SMS", "MAIL"} {
		o.See(mark("method-" + method))
		o.Type(`[data-testid="code-`+method+`"] input`, o.n.Code(t, o.who, method))
	}
	set := func(password string) {
		t.Helper()
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
	t := o.t
	t.Helper()
	fresh := "another-lantern-orchard"
	fill := func(password string) {
		t.Helper()
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
	o.n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": before}).Is(t, 401, "TOKEN_REVOKED")
	o.who.Password = fresh
}

func (o *owner) hasAuthenticator() {
	t := o.t
	t.Helper()
	const secret = `document.querySelector('main [role="alert"] .id code')?.innerText`
	o.Click(mark("totp-setup"))
	o.confirms()
	o.Until(secret)
	text := webtest.Value[string](o.Tab, secret)
	o.Until(`document.querySelector('main [role="alert"] img').naturalWidth > 100`)
	codes := strings.Fields(webtest.Value[string](o.Tab, `document.querySelector('main [role="alert"] pre').innerText`))
	storetest.Equal(t, len(codes), 5, "recovery codes", codes)
	o.look("authenticator")
	o.printsCodes()
	app := blackbox.NewAuthenticator(t, text)
	const shut = `main [role="alert"] button[aria-label="Close"]`
	o.Click(shut)
	o.Until("!" + secret)
	for _, once := range append(codes, text) {
		if webtest.Value[bool](o.Tab, fmt.Sprintf("document.body.textContent.includes(%q)", once)) {
			t.Errorf("%s stays on the page", once)
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
	o.Type(`[data-testid="code-TOTP"] input`, app.Next(t))
	o.Until("!" + oneDialog)
	o.See(mark("totp-setup"))
}

// printsCodes presses the button that prints the recovery codes; nothing else is printed.
func (o *owner) printsCodes() {
	t := o.t
	t.Helper()
	webtest.Value[bool](o.Tab, "(window.print = () => { window.printed = true; }, true)")
	o.Click(mark("print-codes"))
	o.Until("window.printed")
	o.Media("print")
	const shown = `['main [role="alert"] pre', 'main [role="alert"] img', 'main h1', 'header', 'nav']
		.filter((part) => document.querySelector(part).checkVisibility({ visibilityProperty: true })).join(' ')`
	storetest.Equal(t, webtest.Value[string](o.Tab, shown), `main [role="alert"] pre`, "printed")
	o.Media("screen")
}

// endsSessions ends two at once; each request has an idempotency key of its own.
func (o *owner) endsSessions() {
	t := o.t
	t.Helper()
	var others []string
	for range 2 {
		x, _ := o.n.Session(t, o.who)
		others = append(others, x)
	}
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
		o.n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
	}
	if keys := webtest.Value[int](o.Tab, `new Set(heard.keys.filter((k, n) =>
		heard.asked[n] === 'DELETE /auth/sessions')).size`); keys != 2 {
		t.Errorf("two writes had %d keys", keys)
	}
	o.look("security")
	var more []string
	for range 2 {
		x, _ := o.n.Session(t, o.who)
		more = append(more, x)
	}
	o.Click(fmt.Sprintf(`[data-path=%q] [aria-label="Refresh"]`, blackbox.SessionsPath))
	o.rows(blackbox.SessionsPath, 3)
	o.Click(mark("end-others"))
	o.rows(blackbox.SessionsPath, 1)
	for _, x := range more {
		o.n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
	}
}
