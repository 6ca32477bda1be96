package console

import (
	"fmt"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// hands are a user without a mouse.
type hands struct {
	webtest.Keyboard
	tab *webtest.Tab
	t   *testing.T
	s   *blackbox.Site
	n   *blackbox.Node
}

// A user without a mouse logs in, decides on an identity, credits a deposit with the code of the
// authenticator, adjusts a balance, and adds a firewall rule; a second user approves the adjustment. After
// each key a visible element has the focus, even if the row, dialog or challenge that had it has disappeared.
func TestConsoleByKeyboard(t *testing.T) {
	t.Parallel()
	s := blackbox.NewDemoSite(t).Set("LIMITS_ENABLED=false", "MFA_FOUR_EYES="+blackbox.AdjustKey)
	n := s.Start()
	who := blackbox.DemoAdmin()
	chief := s.AddUser("admin")
	session := n.Auth(t, who)
	tab := webtest.Browser(t)
	k := &hands{tab.Keyboard(), tab, t, s, n}
	tab.Open(n.URL + "/console")
	k.login(who, true)
	k.decides()
	app := blackbox.Enrolled(t, n, who, session)
	k.credits(app)
	k.adjusts()
	k.guards()
	tab.Forget()
	tab.Open(n.URL + "/console") // the page forgets its session, and the service keeps it
	k.login(chief, false)
	k.approves(chief)
	k.Back(mark("chip"))
	k.Press(webtest.Enter)
	tab.See(mark("logout"))
	for range 3 { // from the first entry to the last
		if !webtest.Value[bool](tab, `document.activeElement.dataset.testid === 'logout'`) {
			k.Press(webtest.ArrowUp)
		}
	}
	k.Press(webtest.Enter)
	tab.See(mark("login"))
	k.Holds("after the logout")
}

// login fills the form, and first enters one wrong code if wrong is set.
func (k *hands) login(who blackbox.Account, wrong bool) {
	k.t.Helper()
	k.Fill(mark("email"), who.Mail)
	k.Fill(mark("password"), who.Password)
	k.Press(webtest.Enter)
	k.tab.See(mark("code-MAIL") + " input") // the login was answered, so its code was sent
	if wrong {
		k.code("MAIL", blackbox.WrongFor(k.n.Code(k.t, who, "MAIL")))
		k.tab.See(mark("problem"))
		k.Holds("after a wrong code")
	}
	k.code("MAIL", k.n.Code(k.t, who, "MAIL"))
	k.tab.See(mark("nav-/"))
	k.tab.Until(drawn)
	k.Holds("after the login")
}

// code types a code in the field that the challenge focused, or moves to the method's field.
func (k *hands) code(method, code string) {
	k.t.Helper()
	field := mark("code-"+method) + " input"
	k.tab.See(field)
	k.To(field)
	k.Press(code)
}

// firstRow moves to the first row of a list. The page may handle keys a moment after it shows the rows.
func (k *hands) firstRow() {
	k.t.Helper()
	k.tab.See(aRow)
	blackbox.Until(k.t, blackbox.Within(60), "the focus on a row", func() bool {
		k.Press("j")
		return webtest.Value[bool](k.tab, `document.activeElement.matches('[data-testid="row"]')`)
	})
}

// open opens a screen by the menu.
func (k *hands) open(path string) {
	k.t.Helper()
	k.Back(mark("nav-" + path))
	webtest.Value[bool](k.tab, `(() => { window.headingBefore = document.querySelector('h1'); return true; })()`)
	k.Press(webtest.Enter)
	k.tab.Until(fmt.Sprintf(`location.pathname === '/console%s' &&
		![null, window.headingBefore].includes(document.querySelector('h1'))`, path)) // the previous screen may stay a while
	k.tab.Until(drawn)
	k.Holds("at " + path)
}

// find types into the first filter of a list, which the key / focuses.
func (k *hands) find(filter, value string) {
	k.t.Helper()
	k.tab.See(aRow)
	k.Press("/")
	k.Press(value + webtest.Enter)
	k.tab.Until(fmt.Sprintf(`new URLSearchParams(location.search).get(%q) === %q`, filter, value))
	k.tab.Until(drawn)
	k.Holds("after a filter")
}

// decides approves an identity in the cockpit, undoes that and returns to the queue.
func (k *hands) decides() {
	k.open("/kyc")
	k.find("userId", k.s.Text("SELECT id FROM users WHERE email = 'omar@demo.example'"))
	k.firstRow()
	k.Press(webtest.Enter)
	const opened = `document.querySelector('[data-testid="case"][data-ready]')`
	k.tab.Until(opened + " !== null")
	k.Holds("at a case")
	first := webtest.Value[string](k.tab, opened+".dataset.case")
	k.Press("1" + webtest.Enter)
	k.tab.See(mark("undo"))
	k.tab.Until(fmt.Sprintf(`%s?.dataset.case !== %q`, opened, first))
	k.Holds("after the decision")
	k.Press("u")
	k.tab.Until(caseIs(first))
	k.Holds("at the case that was taken back")
	k.Press("b")
	k.tab.Until(`location.pathname === '/console/kyc'`)
	k.tab.See(aRow)
	k.Holds("at the queue")
}

// credits finalizes a pending deposit; the service requires the code of the authenticator.
func (k *hands) credits(app *blackbox.Authenticator) {
	k.open("/transactions")
	k.find("userId",
		k.s.Text("SELECT user_id FROM deposit WHERE status = -9 AND sender_info <> '' ORDER BY id LIMIT 1"))
	k.To(aRow)
	k.Press("x")
	k.To(mark("decide"))
	k.Press(webtest.Enter)
	k.tab.See(theOpen)
	k.Fill(mark("field-reason"), "The sender is known")
	k.To(theSend)
	k.Press(webtest.Space)
	k.tab.See(mark("otp"))
	k.Press(app.Next(k.t)) // the dialog has focused the first digit
	k.tab.See(mark("close"))
	k.Holds("after the code")
	k.To(mark("close"))
	k.Press(webtest.Enter)
	k.tab.Until(noDialog)
	k.Holds("after the row was acted on")
}

// adjusts requests an adjustment, which waits for another user.
func (k *hands) adjusts() {
	k.open("/adjust")
	k.Fill(mark("field-userId"), k.s.Text("SELECT owner FROM account WHERE id LIKE 'user/1/%' ORDER BY owner LIMIT 1"))
	for _, field := range [][2]string{{"currencyCode", "BTC"}, {"networkCode", "BTC"}, {"amount", "0.00000001"},
		{"reason", "A deposit that was booked short"}} {
		k.Fill(mark("field-"+field[0]), field[1])
	}
	k.tab.Until(`document.querySelectorAll('[data-testid="preview"] [data-testid="diff"]').length === 2`)
	k.To(theSend)
	k.Press(webtest.Enter)
	blackbox.Until(k.t, blackbox.Within(10), "the adjustment waits", func() bool { return k.s.Count("four_eyes") == 1 })
	k.tab.Until(`!document.querySelector('[data-testid="send"]:disabled')`)
	k.Holds("after the request")
}

// guards adds a firewall rule after a trial of it, and opens an explanation.
func (k *hands) guards() {
	k.open("/firewall")
	k.To(mark("write-/admin/system/waf/rules"))
	k.Press(webtest.Enter)
	k.tab.See(mark("field-label"))
	k.Fill(mark("field-label"), "by-keys")
	k.Fill(mark("field-targetEntities"), "127.0.0.1"+webtest.Enter)
	k.Fill(mark("field-targetResources"), "POST /auth/login"+webtest.Enter)
	k.tab.Until(`document.querySelector('[data-stopped]') !== null`)
	k.To(theSend)
	k.Press(webtest.Enter)
	k.tab.Until(noDialog)
	k.tab.Until(`[...document.querySelectorAll('[data-testid="row"]')].some((r) => r.innerText.includes('by-keys'))`)
	k.Holds("after the rule")
	k.firstRow()
	k.Press(webtest.Enter)
	k.tab.See(mark("rule-trial"))
	k.Press(webtest.Escape)
	k.tab.Until(noDialog)
	k.Holds("after the drawer")
	k.Back(`main a[href$="/firewall/explain"]`)
	k.Press(webtest.Enter)
	k.Fill(mark("ask-resource"), "POST /auth/login"+webtest.Enter)
	k.tab.See(mark("decision"))
	k.Holds("after the explanation")
}

// approves executes the other user's request.
func (k *hands) approves(chief blackbox.Account) {
	k.open("/approvals")
	k.firstRow()
	k.Press(webtest.Enter)
	k.To(mark("approve"))
	k.Press(webtest.Enter)
	k.tab.See(mark("code-MAIL") + " input") // before, the last code is that of the login
	k.code("MAIL", k.n.Code(k.t, chief, "MAIL"))
	k.tab.See(`[role="dialog"] [data-state="APPROVED"]`)
	k.Holds("after the challenge")
	k.Press(webtest.Escape)
	k.tab.Until(noDialog)
	k.Holds("after the decision")
}
