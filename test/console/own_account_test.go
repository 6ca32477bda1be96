package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// A customer without any permission of administration uses the console for the own account. A forgotten password
// is reset at the login. The console shows the pages of the own account and no other. A password is refused beside
// its field, then changed, which ends the other sessions. The secret of an authenticator is shown as text and as a
// picture, the recovery codes are printed alone, and the authenticator is removed. Sessions are ended, two at once
// and all others. Notifications are marked as read. The address book and the list of countries require a
// challenge. An administrator then finds all of it in the audit, and the true state of the jobs and the cluster.
func TestConsoleOwnAccount(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start("MFA_GUARDED=POST " + blackbox.AddressesPath + "=WITHDRAWAL_ADDRESS_ADD")
		boss, customer := s.Seeded("admin"), s.Seeded("user")
		head := n.Auth(t, boss)
		n.Ok(t, "POST", "/admin/system/mfa/actions", blackbox.NewAction("WITHDRAWAL_ADDRESS_ADD"), head)
		customer.ID = s.Text("SELECT id FROM users WHERE email = '" + customer.Mail + "'")
		n.Ok(t, "POST", "/admin/send-notification", map[string]any{"memberId": []string{customer.ID}, "topic": "news",
			"title": "A new currency", "body": "<b>SOL</b> can be traded from today."},
			blackbox.Headers{"x-auth": head["x-auth"], "otp": blackbox.Enrolled(t, n, boss, head).Next(t)})
		o := &owner{viewer{webtest.Browser(t), t}, n, customer}
		o.resetsPassword()
		before, _ := n.Session(t, o.who)
		consoleLogin(t, o.Tab, n, o.who, "")
		listens(o.Tab)
		o.seesOnlyOwn()
		o.changesPassword(before)
		o.hasAuthenticator()
		o.endsSessions()
		o.readsNotifications()
		o.keepsAddress()
		o.choosesCountry()
		fromChip(o.Tab, "logout")
		o.See(mark("login"))
		o.who = boss
		consoleLogin(t, o.Tab, n, boss, "/jobs")
		o.seesTheSystem()
	})
}

// owner is a user at the pages of the own account.
type owner struct {
	viewer
	n   *blackbox.Node
	who blackbox.Account
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

// seesOnlyOwn opens every screen of the menu: those of the own account, and none that the service refuses.
func (o *owner) seesOnlyOwn() {
	t := o.t
	o.Until(`location.pathname === '/console/me'`) // home has no work for a customer
	storetest.Same(t, webtest.Value[[]string](o.Tab, screens), ownMenu, "the menu")
	for _, screen := range append(slices.Clone(ownMenu[1:]), ownMenu[0]) {
		menuTo(o.Tab, screen)
		if problems := webtest.Value[[]string](o.Tab, complaints); len(problems) > 0 {
			t.Errorf("%s shows %v", screen, problems)
		}
		if here := webtest.Value[[]string](o.Tab, `[...document.querySelectorAll('nav a[aria-current], nav a[data-active]')]
			.map((link) => link.dataset.testid)`); !slices.Equal(here, []string{"nav-/me", "go-" + screen}) {
			t.Errorf("the menu marks %v at %s", here, screen)
		}
		o.look("customer" + strings.ReplaceAll(screen, "/", "-"))
	}
	others := webtest.Value[[]string](o.Tab, `performance.getEntriesByType('resource').map((e) => new URL(e.name).pathname)
		.filter((path) => path.startsWith('/admin/'))`)
	if len(others) > 0 {
		t.Errorf("the screens of a customer call %v", others)
	}
}

// readsNotifications marks the newest notification as read, and then all. Their text is no markup.
func (o *owner) readsNotifications() {
	t := o.t
	const notifications = "/user/notifications"
	var all []struct{ ReadAt *string }
	unread := func() (n int) {
		t.Helper()
		o.n.Ok(t, "GET", notifications, nil, o.n.Auth(t, o.who)).Read(t, &all)
		for _, one := range all {
			if one.ReadAt == nil {
				n++
			}
		}
		return n
	}
	before := unread()
	goTo(o.Tab, "/me/notifications")
	o.rows(notifications, len(all))
	list := o.Text(`[data-path="` + notifications + `"] tbody`)
	if !strings.Contains(list, "A new currency") || !strings.Contains(list, "<b>SOL</b> can be traded") {
		t.Errorf("the notifications are %q", list)
	}
	o.Click(row(notifications) + ` input[type="checkbox"]`)
	o.Click(`[data-path="` + notifications + `"] [data-testid="bulk"] button`)
	o.Until(`!document.querySelector('[data-path="` + notifications + `"] [data-testid="bulk"]')`)
	storetest.Equal(t, unread(), before-1, "unread notifications after one was read")
	o.Click(mark("read-all"))
	o.Until(`[...document.querySelectorAll('` + row(notifications) + `')]
		.every((r) => r.querySelectorAll('time').length === 2)`)
	storetest.Equal(t, unread(), 0, "unread notifications after all were read")
	o.look("notifications")
}

func (o *owner) keepsAddress() {
	goTo(o.Tab, "/me/addresses")
	o.Click(mark("write-" + blackbox.AddressesPath))
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
	o.rows(blackbox.AddressesPath, 1)
	storetest.Contains(o.t, o.Text(row(blackbox.AddressesPath)), "Colder wallet", "the address book shows")
	o.look("addresses")
}

// choosesCountry changes the countries, which ends every session, this one too.
func (o *owner) choosesCountry() {
	const countries = "/user/geofilter/countries"
	again := func() {
		o.t.Helper()
		o.See(mark("lock"))
		o.Type(mark("email"), o.who.Mail)
		o.Type(mark("password"), o.who.Password)
		o.Click(mark("login"))
		o.confirms()
		o.Until(`!document.querySelector('[data-testid="lock"]')`)
	}
	goTo(o.Tab, "/me/countries")
	o.Click(mark("write-" + countries))
	o.Click(mark("field-countryCode"))
	o.Click(`[role="option"][value="TR"]`)
	o.Click(mark("send"))
	o.confirms()
	again()
	o.Until("!" + oneDialog)
	o.rows(countries, 1)
	o.Until(`document.querySelector('` + row(countries) + ` img').naturalWidth > 0`)
	o.look("countries")
	o.Click(row(countries) + ` input[type="checkbox"]`)
	o.Click(mark("bulk-" + countries))
	o.Click(mark("bulk-send"))
	o.confirms()
	again()
	o.rows(countries, 0)
}

func (o *owner) seesTheSystem() {
	head := o.n.Auth(o.t, o.who)
	o.n.Ok(o.t, "POST", "/integration/begin-accounting-integration",
		`{"startDate":"2026-01-01","endDate":"2026-01-02","invoiceDate":"2026-01-03"}`, head)
	o.Until(`[...document.querySelectorAll('[data-testid="row"]')].some((r) =>
		/^accounting export\s[^]*\sdone\s/i.test(r.innerText.trim())) ||
		document.querySelector('main [aria-label="Refresh"]:not([disabled])')?.click()`)
	o.look("jobs")
	goTo(o.Tab, "/cluster")
	var cluster struct {
		Data struct {
			Node    string
			Members []struct{ ID string }
		}
	}
	o.n.Ok(o.t, "GET", "/admin/cluster", nil, head).Read(o.t, &cluster)
	node := cluster.Data.Node
	if node == "nonhost" { // the service without a cluster
		node = "This process"
	}
	o.Until(fmt.Sprintf(`document.querySelectorAll('[data-testid="members"] tbody tr').length === %d &&
		document.querySelector('main').innerText.includes(%q)`, len(cluster.Data.Members), node))
	o.look("cluster")
	goTo(o.Tab, "/setup")
	o.See(`[data-testid="setup-control"]`)
	o.Click(`[data-testid="setup-check"]`)
	o.See(`[data-testid="setup-ok"]`)
	o.look("setup")
	goTo(o.Tab, "/audit")
	for _, action := range []string{"UPDATE_PASSWORD", "TOTP_SETUP", "TOTP_RECOVER", "TOTP_DEACTIVATE", "SESSION_END",
		"WITHDRAWAL_ADDRESS_ADD", "GEOFILTER_ADD", "GEOFILTER_REMOVE"} {
		o.See(acted(action))
	}
}
