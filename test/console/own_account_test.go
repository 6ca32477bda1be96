package console

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
	"castellan/test/harness"
	"castellan/web/webtest"
)

// An administrator secures the administrator's own account in the console. A password is refused beside its
// field, then changed, which ends the other sessions. The secret of an authenticator is shown as text and as a
// picture, which is decoded, and the authenticator is removed. Two sessions are ended at once. The address
// book and the list of countries require a challenge. The jobs and the cluster show the true state, and the
// audit contains all of it.
func TestConsoleOwnAccount(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := s.Start("MFA_GUARDED=POST " + harness.AddressesPath + "=WITHDRAWAL_ADDRESS_ADD")
		boss := s.Seeded("admin")
		before, _ := n.Session(t, boss)
		head := blackbox.Headers{"x-auth": before}
		n.Ok(t, "POST", "/admin/system/mfa/actions", harness.NewAction("WITHDRAWAL_ADDRESS_ADD"), head)
		tab := webtest.Browser(t)
		consoleLogin(t, tab, n, boss, "/me")
		listens(tab)
		o := &owner{Tab: tab, t: t, n: n, who: boss}
		o.changesPassword(before)
		o.hasAuthenticator()
		o.endsSessions()
		o.keepsAddress()
		o.choosesCountry()
		o.seesTheSystem()
	})
}

// owner is a user at the pages of the own account.
type owner struct {
	*webtest.Tab
	t   *testing.T
	n   *blackbox.Node
	who blackbox.Account
}

func (o *owner) shot(name string) {
	o.t.Helper()
	barriers(o.t, o.Tab, name)
	o.Screenshot(o.t, filepath.Join(o.t.ArtifactDir(), "console-own", name+".png"))
}

// confirms answers the challenge above the page by a mail.
func (o *owner) confirms() {
	o.t.Helper()
	o.See(mark("method-MAIL"))
	o.Type(`[data-testid="code-MAIL"] input`, o.n.Code(o.t, o.who, "MAIL"))
	o.Until(`!document.querySelector('[data-testid="challenge"]')`)
}

// row selects the rows of one list of the page.
func row(list string) string { return fmt.Sprintf(`[data-path=%q] [data-testid="row"]`, list) }

// rows waits until a list has so many rows.
func (o *owner) rows(list string, want int) {
	o.t.Helper()
	o.Until(fmt.Sprintf(`document.querySelectorAll(%q).length === %d`, row(list), want))
}

const oneDialog = `document.querySelector('[role="dialog"]')`

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
	fill("short")
	o.Until(`document.querySelector('[data-testid="field-password"]').closest('.mantine-InputWrapper-root').innerText
		.includes('must have at least 8 characters')`)
	o.shot("password-refused")
	fill(fresh)
	o.See(mark("challenge"))
	o.shot("password-challenge")
	o.confirms()
	o.Until("!" + oneDialog)
	o.rows(blackbox.SessionsPath, 1)
	o.n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": before}).Is(t, 401, "TOKEN_REVOKED")
	o.who.Password = fresh
}

func (o *owner) hasAuthenticator() {
	t := o.t
	t.Helper()
	const secret = `document.querySelector('main [role="alert"] button code')?.innerText`
	o.Click(mark("totp-setup"))
	o.confirms()
	o.Until(secret)
	text := webtest.Value[string](o.Tab, secret)
	o.Until(`document.querySelector('main [role="alert"] img').naturalWidth > 100`)
	codes := strings.Fields(webtest.Value[string](o.Tab, `document.querySelector('main [role="alert"] pre').innerText`))
	if len(codes) != 5 {
		t.Errorf("recovery codes %q", codes)
	}
	o.shot("authenticator")
	app := harness.NewAuthenticator(t, text)
	const shut = `main [role="alert"] button[aria-label="Close"]`
	o.Click(shut)
	o.Until("!" + secret)
	o.Click(mark("write-/auth/totp/recover"))
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
			fmt.Sprintf(`!document.querySelector(%q).innerText.toUpperCase().includes('YES')`, one)) {
			o.Click(one + ` input[type="checkbox"]`)
		}
	}
	o.Click(mark("end-sessions"))
	o.rows(blackbox.SessionsPath, 1)
	for _, x := range others {
		o.n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
	}
	if keys := webtest.Value[int](o.Tab, `new Set(heard.keys.filter((k, n) =>
		heard.asked[n] === 'DELETE /auth/sessions')).size`); keys != 2 {
		t.Errorf("two writes had %d keys", keys)
	}
	o.shot("security")
}

func (o *owner) keepsAddress() {
	t := o.t
	t.Helper()
	o.Click(mark("nav-/me/addresses"))
	o.Click(mark("write-" + harness.AddressesPath))
	o.Type(mark("field-name"), "Cold wallet")
	for _, choice := range []string{"currencyCode", "networkCode"} {
		o.Click(mark("field-" + choice))
		const seen = `[...document.querySelectorAll('[role="option"][value="BTC"]')].find((e) => e.checkVisibility())`
		o.Until(seen)
		webtest.Value[bool](o.Tab, "("+seen+".click(), true)")
	}
	o.Type(mark("field-address"), "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")
	o.Click(mark("send"))
	o.See(mark("challenge"))
	o.Click(mark("challenge-cancel")) // cancelling keeps the typed text
	o.Type(mark("field-name"), "Colder wallet")
	o.Click(mark("send"))
	o.confirms()
	o.Until("!" + oneDialog)
	o.rows(harness.AddressesPath, 1)
	if text := o.Text(row(harness.AddressesPath)); !strings.Contains(text, "Colder wallet") {
		t.Errorf("the address book shows %q", text)
	}
	o.shot("addresses")
}

// choosesCountry changes the countries, which ends every session, this one too.
func (o *owner) choosesCountry() {
	t := o.t
	t.Helper()
	const countries = "/user/geofilter/countries"
	again := func() {
		t.Helper()
		o.See(mark("lock"))
		o.Type(mark("email"), o.who.Mail)
		o.Type(mark("password"), o.who.Password)
		o.Click(mark("login"))
		o.confirms()
		o.Until(`!document.querySelector('[data-testid="lock"]')`)
	}
	o.Click(mark("nav-/me/countries"))
	o.Click(mark("write-" + countries))
	o.Click(mark("field-countryCode"))
	o.Click(`[role="option"][value="TR"]`)
	o.Click(mark("send"))
	o.confirms()
	again()
	o.Until("!" + oneDialog)
	o.rows(countries, 1)
	o.shot("countries")
	o.Click(row(countries) + ` input[type="checkbox"]`)
	o.Click(`[data-path="` + countries + `"] .mantine-Paper-root button`)
	o.confirms()
	again()
	o.rows(countries, 0)
}

func (o *owner) seesTheSystem() {
	t := o.t
	t.Helper()
	x, _ := o.n.Session(t, o.who)
	head := blackbox.Headers{"x-auth": x}
	o.n.Ok(t, "POST", "/integration/begin-accounting-integration",
		`{"startDate":"2026-01-01","endDate":"2026-01-02","invoiceDate":"2026-01-03"}`, head)
	o.Click(mark("nav-/jobs"))
	o.Until(`[...document.querySelectorAll('[data-testid="row"]')].some((r) =>
		/accounting-integration\s+done/i.test(r.innerText)) ||
		document.querySelector('main [aria-label="Refresh"]:not([disabled])')?.click()`)
	o.shot("jobs")
	o.Click(mark("nav-/cluster"))
	var cluster struct {
		Data struct {
			Node    string
			Members []struct{ ID string }
		}
	}
	o.n.Ok(t, "GET", "/admin/cluster", nil, head).Read(t, &cluster)
	o.Until(fmt.Sprintf(`document.querySelectorAll('[data-testid="members"] tbody tr').length === %d &&
		document.querySelector('main').innerText.includes(%q)`, len(cluster.Data.Members), cluster.Data.Node))
	o.shot("cluster")
	o.Click(mark("nav-/setup"))
	o.See(`[data-testid="setup-control"]`)
	o.Click(`[data-testid="setup-check"]`)
	o.See(`[data-testid="setup-ok"]`)
	o.shot("setup")
	o.Click(mark("nav-/audit"))
	for _, action := range []string{"UPDATE_PASSWORD", "TOTP_SETUP", "TOTP_RECOVER", "TOTP_DEACTIVATE", "SESSION_END",
		"WITHDRAWAL_ADDRESS_ADD", "GEOFILTER_ADD", "GEOFILTER_REMOVE"} {
		o.See(acted(action))
	}
}
