package console

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"castellan/domain/kit/picture/picturetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// editor is a user who maintains the platform's contents and settings in the console.
type editor struct {
	*webtest.Tab
	t    *testing.T
	auth *blackbox.Authenticator
}

// An editor adds a section of a contract, moves it by a key and by drag, and adds many at once. A new version replaces
// the contract, another contract is added, and an option of a form is changed. The editor
// publishes an announcement, changes a parameter after seeing the difference, sends a mailing and follows its
// job. A picture is uploaded, a currency is added and changed, the accounting of a period is started, and an
// agreement is published. A deployment and a VPN access request are decided. The audit contains all of it.
func TestConsoleContent(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss := s.Seeded("admin")
		who := blackbox.Admin(t, s, n)
		n.Ok(t, "POST", "/admin/bulk-create-contract-details", map[string]any{"contractId": 1, "details": []map[string]any{
			{"title": "Fees", "content": "<p>None.</p>"}, {"title": "End", "content": "<p>At <b>any</b> time.</p>"}}}, who)
		n.Ok(t, "POST", "/admin/deploy-request", map[string]any{"service_name": "wallet", "type": "backend",
			"original_service_name": "wallet-service", "build_number": "2026.11.23", "duration_minutes": 15,
			"comment": "Fixes the daily limits"}, who)
		var found []map[string]any
		n.Ok(t, "GET", "/admin/list-users?email="+s.Seeded("user").Mail, nil, who).Read(t, &found)
		n.Ok(t, "POST", "/admin/vpn-request", map[string]any{"userId": found[0]["userId"], "user_name": "jane",
			"type": "new"}, who)
		tab := webtest.Browser(t)
		consoleLogin(t, tab, n, boss, "/contracts")
		e := editor{Tab: tab, t: t, auth: blackbox.Enrolled(t, n, boss, who)}
		e.contract()
		e.version()
		e.option()
		e.announcement()
		e.parameter()
		e.mailing(found[0]["userId"].(string))
		e.picture()
		e.currency()
		e.period()
		e.agreement()
		e.deployment()
		e.audited("CONTRACT_DETAIL_ADD", "CONTRACT_DETAIL_REORDER", "CONTRACT_ADD", "CONTRACT_UPDATE",
			"CONTRACT_VERSION_ADD", "CONTRACT_PUBLISH", "CONTRACT_DEACTIVATE", "DROPDOWN_OPTION_ADD",
			"DROPDOWN_OPTION_UPDATE", "ANNOUNCEMENT_ADD", "PARAMETER_UPDATE",
			"NOTIFICATION_SEND", "CDN_UPLOAD", "ASSETS_SETUP", "ACCOUNTING_BEGIN", "AGREEMENT_ADD", "DEPLOY_REQUEST_UPDATE",
			"VPN_REQUEST_UPDATE")
	})
}

func marked(name string) string { return fmt.Sprintf("[data-testid=%q]", name) }

// to opens a screen by its place in the menu.
func (e editor) to(path string) {
	e.t.Helper()
	before := e.Text("h1")
	goTo(e.Tab, path)
	e.Until(fmt.Sprintf("location.pathname === '/console%s' && document.querySelector('h1') && "+
		"document.querySelector('h1').textContent.trim() !== %q", path, before)) // the previous screen stays for a while
}

// look takes a picture of the screen, which must have no accessibility barrier.
func (e editor) look(name string) {
	e.t.Helper()
	e.Screenshot(e.t, filepath.Join(e.t.ArtifactDir(), "console", name+".png"))
	barriers(e.t, e.Tab, name)
}

// says waits until a text can be read.
func (e editor) says(text string) {
	e.t.Helper()
	e.Until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// gone waits until an element has disappeared.
func (e editor) gone(selector string) {
	e.t.Helper()
	e.Until(fmt.Sprintf("!document.querySelector(%q)", selector))
}

// put fills a field whose keys depend on the language of the browser.
func (e editor) put(field, value string) {
	e.t.Helper()
	e.See(field)
	webtest.Value[bool](e.Tab, fmt.Sprintf(`(() => { const e = document.querySelector(%q);
		Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(e, %q);
		e.dispatchEvent(new Event('input', { bubbles: true })); return true; })()`, field, value))
}

// file gives a file to the field beside a button.
func (e editor) file(field, name, kind string, content []byte) {
	e.t.Helper()
	e.See(field)
	webtest.Value[bool](e.Tab, fmt.Sprintf(`(() => {
		const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0));
		const files = new DataTransfer();
		files.items.add(new File([bytes], %q, { type: %q }));
		const form = document.querySelector(%q).closest('form');
		const input = form.querySelector('input[type="file"]');
		input.files = files.files;
		input.dispatchEvent(new Event('change', { bubbles: true }));
		return true;
	})()`, base64.StdEncoding.EncodeToString(content), name, kind, field))
}

// choose selects an option of a field.
func (e editor) choose(field, option string) {
	e.t.Helper()
	e.Click(field)
	e.Click(fmt.Sprintf(`[role="option"][value=%q]`, option))
}

// send presses the button of a form and waits until the form is closed.
func (e editor) send() {
	e.t.Helper()
	e.Click(marked("send"))
	e.gone(marked("send"))
}

// confirmed sends a form that requires the code of an authenticator.
func (e editor) confirmed() {
	e.t.Helper()
	e.Click(marked("send"))
	e.Type(marked("otp-code")+" input", e.auth.Next(e.t))
	e.gone(marked("send"))
}

func (e editor) contract() {
	e.t.Helper()
	e.Click(marked("row"))
	e.Until(`document.querySelectorAll('[data-testid="section"]').length === 2`)
	e.Click(marked("section-add"))
	e.Type(marked("field-title"), "Scope")
	e.Type(marked("field-content"), `<p>What <b>this</b> is <script>alert(1)</script>about.</p>`)
	e.Until(`document.querySelector('[role="dialog"] [data-testid="richtext"] b')?.textContent === 'this'`)
	e.look("contract-editor")
	e.Click(marked("section-save"))
	e.Until(`document.querySelectorAll('[data-testid="section"]').length === 3`)
	e.gone(`[role="dialog"]`)
	e.PressOn(`[data-testid="section"]:last-child [data-testid="handle"]`, webtest.ArrowUp)
	e.See(marked("order-changed"))
	const focused = `document.activeElement.closest('[data-testid="section"]')?.querySelector('h2')?.textContent`
	e.Until(focused + ` === 'Scope'`)
	e.look("contract")
	e.Click(marked("order-save"))
	e.gone(marked("order-changed"))
	const titles = `[...document.querySelectorAll('[data-testid="section"] h2')].map((h) => h.textContent).join()`
	e.Until(titles + ` === 'Fees,Scope,End'`)
	webtest.Value[bool](e.Tab, dragLastToFirst)
	e.Until(titles + ` === 'End,Fees,Scope'`)
	e.Click(marked("order-save"))
	e.gone(marked("order-changed"))
	e.Click(marked("write-/admin/bulk-create-contract-details"))
	e.Type(marked("field-text"), "# Law\rThat of Ankara.\r# Rest\rNone.")
	e.send()
	e.Until(titles + ` === 'End,Fees,Scope,Law,Rest'`)
	e.Click(marked("write-/admin/bulk-update-contract-details"))
	e.Type(marked("field-find"), "Ankara")
	e.Type(marked("field-put"), "İzmir")
	e.Until(`document.querySelectorAll('[data-testid="diff"] ins').length === 1`)
	e.send()
	e.says("That of İzmir.")
	e.Click(`[data-testid="section"]:last-child input[type="checkbox"]`)
	e.Click(marked("write-/admin/delete-multiple-contract-details"))
	e.send()
	e.Until(titles + ` === 'End,Fees,Scope,Law'`)
}

// dragLastToFirst drags the last section of a contract onto the first.
const dragLastToFirst = `(() => {
	const sections = [...document.querySelectorAll('[data-testid="section"]')];
	const handle = sections.at(-1).querySelector('[data-testid="handle"]');
	const dataTransfer = new DataTransfer();
	const tell = (at, name) => at.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer }));
	return tell(handle, 'dragstart') && !tell(sections[0], 'dragover') && !tell(sections[0], 'drop');
})()`

func (e editor) announcement() {
	e.t.Helper()
	e.to("/announcements")
	e.Click(marked("announcement-add"))
	e.See(marked("title-en")) // the language of the operator
	e.Click(marked("texts-tr"))
	e.Type(marked("title-tr"), "Yeni Şube")
	e.Type(marked("message-tr"), "Pazartesi açıyoruz.")
	e.Click(marked("texts-ar"))
	e.Type(marked("title-ar"), "فرع جديد")
	e.put(marked("field-startDate"), "2026-12-01")
	e.put(marked("field-endDate"), "2026-12-31")
	e.look("announcement-form")
	e.Click(marked("announcement-save"))
	e.gone(marked("announcement-save"))
	e.Click(marked("row"))
	e.See(marked("look"))
	e.says("Pazartesi açıyoruz.")
	e.look("announcement")
	e.PressOn(`[role="dialog"]`, "\x1b")
	e.gone(`[role="dialog"]`)
}

func (e editor) parameter() {
	e.t.Helper()
	e.to("/parameters")
	filterBy(e.Tab, "code", "CDN\r")
	e.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	e.Click(marked("row"))
	e.Type(marked("field-folderTypes"), "badge")
	e.PressOn(marked("send"), "\t") // leaving the field writes its last value
	e.Until(`document.querySelector('[data-testid="diff"] ins')?.textContent.includes('badge')`)
	e.look("parameter")
	e.confirmed()
}

func (e editor) mailing(recipient string) {
	e.t.Helper()
	e.to("/users")
	e.Click(`tbody input[type="checkbox"]`)
	e.Click(marked("bulk-notify")) // opens the form with the selected account
	e.says("Recipients: at most 1")
	e.Click(marked("restored-discard"))
	e.Type(marked("field-memberId"), recipient+" nobody")
	e.Type(marked("field-topic"), "campaign")
	e.Type(marked("field-title"), "New currency")
	e.Type(marked("field-body"), "SOL can be traded.")
	e.See(marked("channels"))
	e.look("mailing-form")
	e.confirmed()
	e.Until(`document.querySelector('[data-testid="job"]')?.innerText.includes('1 of 1 done')`)
	e.says("No account has these ids: nobody")
	e.look("mailing")
	e.Click(marked("write-/send-bulk-sms"))
	e.choose(marked("field-to"), "all")
	e.Type(marked("field-messageBody"), strings.Repeat("ş", 71))
	e.says("71 characters, 2 parts")
	e.look("sms-form")
	e.PressOn(`[role="dialog"]`, "\x1b")
	e.Click(marked("draft-discard"))
	e.gone(`[role="dialog"]`)
}

func (e editor) picture() {
	e.t.Helper()
	e.to("/cdn")
	e.Click(marked("write-/admin/cdn/upload"))
	e.file(marked("field-imageName"), "logo.jpg", "image/jpeg", picturetest.JPEG(40, 20))
	e.Type(marked("field-imageName"), "logo.jpg")
	e.choose(marked("field-folderType"), "badge")
	e.send()
	e.Until(`document.querySelector('[data-testid="uploaded"] img')?.naturalWidth === 40`)
	e.look("cdn")
}

func (e editor) currency() {
	e.t.Helper()
	e.to("/currencies")
	e.See(marked("row"))
	e.look("currencies")
	e.Click(marked("write-/admin/assets/setup"))
	for name, value := range map[string]string{
		"currency.code": "AVAX", "currency.name": "Avalanche", "currency.network": "AVAXC",
		"currency.image": "https://cdn.example.com/avax.svg", "currency.pngimage": "/coins/avax.png",
		"currency.formatassetprice": "0.01", "currency.formatorderquantity": "0.0001", "currency.threshold": "0.5",
		"currency.marketdataid": "5805", "currency.marketlistingslug": "avalanche", "currencyNetwork.networkCode": "AVAXC",
		"currencyNetwork.networkName": "Avalanche", "currencyNetwork.kytNetworkName": "avalanche",
		"currencyOfNetwork.currencyCode": "AVAX", "currencyOfNetwork.networkCode": "AVAXC",
		"currencyOfNetwork.screeningSymbol": "AVAX", "currencyOfNetwork.formatPrecision": "18",
		"currencyOfNetwork.walletProviderId": "3", "currencyOfNetwork.walletCurrencyId": "44",
		"currencyOfNetwork.networkId": "43114"} {
		e.put(marked("field-"+name), value)
	}
	e.look("currency-form")
	e.send()
	e.says("AVAX")
	filterBy(e.Tab, "symbol", "AVAX\r")
	e.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	e.Click(marked("row"))
	e.Click(marked("write-/admin/currency-activate"))
	e.Click(marked("field-currencyOfNetwork"))
	e.See(marked("diff"))
	e.send()
	e.Click(marked("row"))
	e.Click(marked("write-/admin/assets/setup-update"))
	e.put(marked("field-currency.name"), "Avalanche C")
	e.Until(`document.querySelectorAll('[data-testid="diff"] ins').length === 1`)
	e.send()
	e.says("Avalanche C")
	e.Click(marked("tab-published"))
	e.says("Avalanche")
	e.look("currencies-published")
	e.to("/rates")
	e.Click(marked("rate-ask"))
	e.See(marked("problem")) // this pair has no rate
	e.look("rates")
}

func (e editor) period() {
	e.t.Helper()
	e.to("/accounting")
	e.Click(marked("write-/integration/begin-accounting-integration"))
	e.put(marked("field-startDate"), "2026-10-01")
	e.put(marked("field-endDate"), "2026-10-31")
	e.put(marked("field-invoiceDate"), "2026-11-01")
	e.look("accounting-form")
	e.send()
	e.See(marked("job"))
	e.says("accounting/")
	e.look("accounting")
}

func (e editor) agreement() {
	e.t.Helper()
	e.to("/agreements")
	e.Click(marked("write-/admin/terms-of-service"))
	e.Type(marked("field-name"), "Terms of service")
	e.Type(marked("field-description"), "Fees changed")
	e.file(marked("field-name"), "terms.pdf", "application/pdf", []byte("%PDF-1.4\n%%EOF\n"))
	e.look("agreement-form")
	e.send()
	e.says("Fees changed")
	e.look("agreements")
}

func (e editor) deployment() {
	e.t.Helper()
	e.to("/requests")
	e.Click(marked("row"))
	e.look("request")
	e.Click(marked("bulk-/admin/update-deploy-request"))
	e.Type(marked("decision-comment"), "Looked at together")
	e.Click(marked("bulk-send"))
	e.gone(marked("row"))
	e.gone(`[role="dialog"]`)
	e.Click(marked("filters"))
	e.choose(marked("filter-status"), "APPROVED")
	e.says("Looked at together")
	e.look("requests")
	e.Click(marked("tab-vpn"))
	e.Click(marked("row") + " td:nth-child(3)")
	e.Click(marked("write-/admin/update-vpn-request"))
	e.Type(marked("field-comment"), "Until June")
	e.send()
	e.says("Until June")
	e.gone(`[role="dialog"]`)
	e.Click(marked("row") + " td:nth-child(3)")
	e.Click(`[role="dialog"] ` + marked("bulk-/admin/update-vpn-request"))
	e.Click(marked("bulk-send"))
	e.gone(marked("row"))
	e.gone(`[role="dialog"]`)
}

// audited finds the actions in the audit.
func (e editor) audited(actions ...string) {
	e.t.Helper()
	e.to("/audit")
	e.See(marked("row"))
	for _, action := range actions {
		e.See(acted(action))
	}
}
