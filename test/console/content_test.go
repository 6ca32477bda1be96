package console

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/picture/picturetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// editor is a user who maintains the platform's contents and settings in the console.
type editor struct {
	viewer
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
		e := editor{viewer{tab, t}, blackbox.Enrolled(t, n, boss, who)}
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

// send presses the button of a form and waits until the form is closed.
func (e editor) send() {
	e.t.Helper()
	e.Click(mark("send"))
	e.gone(mark("send"))
}

// confirmed sends a form that requires the code of an authenticator.
func (e editor) confirmed() {
	e.t.Helper()
	e.Click(mark("send"))
	e.Type(mark("otp-code")+" input", e.auth.Next(e.t))
	e.gone(mark("send"))
}

func (e editor) contract() {
	e.Click(mark("row"))
	e.Until(`document.querySelectorAll('[data-testid="section"]').length === 2`)
	e.Click(mark("section-add"))
	e.Type(mark("field-title"), "Scope")
	e.Type(mark("field-content"), `<p>What <b>this</b> is <script>alert(1)</script>about.</p>`)
	e.Until(`document.querySelector('[role="dialog"] [data-testid="richtext"] b')?.textContent === 'this'`)
	e.look("contract-editor")
	e.Click(mark("section-save"))
	e.Until(`document.querySelectorAll('[data-testid="section"]').length === 3`)
	e.gone(`[role="dialog"]`)
	e.PressOn(`[data-testid="section"]:last-child [data-testid="handle"]`, webtest.ArrowUp)
	e.See(mark("order-changed"))
	const focused = `document.activeElement.closest('[data-testid="section"]')?.querySelector('h2')?.textContent`
	e.Until(focused + ` === 'Scope'`)
	e.look("contract")
	e.Click(mark("order-save"))
	e.gone(mark("order-changed"))
	const titles = `[...document.querySelectorAll('[data-testid="section"] h2')].map((h) => h.textContent).join()`
	e.Until(titles + ` === 'Fees,Scope,End'`)
	webtest.Value[bool](e.Tab, dragLastToFirst)
	e.Until(titles + ` === 'End,Fees,Scope'`)
	e.Click(mark("order-save"))
	e.gone(mark("order-changed"))
	e.Click(mark("write-/admin/bulk-create-contract-details"))
	e.Type(mark("field-text"), "# Law\rThat of Ankara.\r# Rest\rNone.")
	e.send()
	e.Until(titles + ` === 'End,Fees,Scope,Law,Rest'`)
	e.Click(mark("write-/admin/bulk-update-contract-details"))
	e.Type(mark("field-find"), "Ankara")
	e.Type(mark("field-put"), "İzmir")
	e.Until(`document.querySelectorAll('[data-testid="diff"] ins').length === 1`)
	e.send()
	e.says("That of İzmir.")
	e.Click(`[data-testid="section"]:last-child input[type="checkbox"]`)
	e.Click(mark("write-/admin/delete-multiple-contract-details"))
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
	e.to("/announcements")
	e.Click(mark("announcement-add"))
	e.See(mark("title-en")) // the language of the operator
	e.Click(mark("texts-tr"))
	e.Type(mark("title-tr"), "Yeni Şube")
	e.Type(mark("message-tr"), "Pazartesi açıyoruz.")
	e.Click(mark("texts-ar"))
	e.Type(mark("title-ar"), "فرع جديد")
	e.put(mark("field-startDate"), "2026-12-01")
	e.put(mark("field-endDate"), "2026-12-31")
	e.look("announcement-form")
	e.Click(mark("announcement-save"))
	e.gone(mark("announcement-save"))
	e.Click(mark("row"))
	e.See(mark("look"))
	e.says("Pazartesi açıyoruz.")
	e.look("announcement")
	e.PressOn(`[role="dialog"]`, "\x1b")
	e.gone(`[role="dialog"]`)
}

func (e editor) parameter() {
	e.to("/parameters")
	filterBy(e.Tab, "code", "CDN\r")
	e.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	e.Click(mark("row"))
	e.Type(mark("field-folderTypes"), "badge")
	e.PressOn(mark("send"), "\t") // leaving the field writes its last value
	e.Until(`document.querySelector('[data-testid="diff"] ins')?.textContent.includes('badge')`)
	e.look("parameter")
	e.confirmed()
}

func (e editor) mailing(recipient string) {
	e.to("/users")
	e.Click(`tbody input[type="checkbox"]`)
	e.Click(mark("bulk-notify")) // opens the form with the selected account
	e.says("Recipients: at most 1")
	e.Click(mark("restored-discard"))
	e.Type(mark("field-memberId"), recipient+" nobody")
	e.Type(mark("field-topic"), "campaign")
	e.Type(mark("field-title"), "New currency")
	e.Type(mark("field-body"), "SOL can be traded.")
	e.See(mark("channels"))
	e.look("mailing-form")
	e.confirmed()
	e.Until(`document.querySelector('[data-testid="job"]')?.innerText.includes('1 of 1 done')`)
	e.says("No account has these ids: nobody")
	e.look("mailing")
	e.Click(mark("write-/send-bulk-sms"))
	e.choose(mark("field-to"), "all")
	e.Type(mark("field-messageBody"), strings.Repeat("ş", 71))
	e.says("71 characters, 2 parts")
	e.look("sms-form")
	e.PressOn(`[role="dialog"]`, "\x1b")
	e.Click(mark("draft-discard"))
	e.gone(`[role="dialog"]`)
}

func (e editor) picture() {
	e.to("/cdn")
	e.Click(mark("write-/admin/cdn/upload"))
	e.file(mark("field-imageName"), "logo.jpg", "image/jpeg", picturetest.JPEG(40, 20))
	e.Type(mark("field-imageName"), "logo.jpg")
	e.choose(mark("field-folderType"), "badge")
	e.send()
	e.Until(`document.querySelector('[data-testid="uploaded"] img')?.naturalWidth === 40`)
	e.look("cdn")
}

func (e editor) currency() {
	e.to("/currencies")
	e.See(mark("row"))
	e.look("currencies")
	e.Click(mark("write-/admin/assets/setup"))
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
		e.put(mark("field-"+name), value)
	}
	e.look("currency-form")
	e.send()
	e.says("AVAX")
	filterBy(e.Tab, "symbol", "AVAX\r")
	e.Until(`document.querySelectorAll('[data-testid="row"]').length === 1`)
	e.Click(mark("row"))
	e.Click(mark("write-/admin/currency-activate"))
	e.Click(mark("field-currencyOfNetwork"))
	e.See(mark("diff"))
	e.send()
	e.Click(mark("row"))
	e.Click(mark("write-/admin/assets/setup-update"))
	e.put(mark("field-currency.name"), "Avalanche C")
	e.Until(`document.querySelectorAll('[data-testid="diff"] ins').length === 1`)
	e.send()
	e.says("Avalanche C")
	e.Click(mark("tab-published"))
	e.says("Avalanche")
	e.look("currencies-published")
	e.to("/rates")
	e.Click(mark("rate-ask"))
	e.See(mark("problem")) // this pair has no rate
	e.look("rates")
}

func (e editor) period() {
	e.to("/accounting")
	e.Click(mark("write-/integration/begin-accounting-integration"))
	e.put(mark("field-startDate"), "2026-10-01")
	e.put(mark("field-endDate"), "2026-10-31")
	e.put(mark("field-invoiceDate"), "2026-11-01")
	e.look("accounting-form")
	e.send()
	e.See(mark("job"))
	e.says("accounting/")
	e.look("accounting")
}

func (e editor) agreement() {
	e.to("/agreements")
	e.Click(mark("write-/admin/terms-of-service"))
	e.Type(mark("field-name"), "Terms of service")
	e.Type(mark("field-description"), "Fees changed")
	e.file(mark("field-name"), "terms.pdf", "application/pdf", []byte("%PDF-1.4\n%%EOF\n"))
	e.look("agreement-form")
	e.send()
	e.says("Fees changed")
	e.look("agreements")
}

func (e editor) deployment() {
	e.to("/requests")
	e.Click(mark("row"))
	e.look("request")
	e.Click(mark("bulk-/admin/update-deploy-request"))
	e.Type(mark("decision-comment"), "Looked at together")
	e.Click(mark("bulk-send"))
	e.gone(mark("row"))
	e.gone(`[role="dialog"]`)
	e.Click(mark("filters"))
	e.choose(mark("filter-status"), "APPROVED")
	e.says("Looked at together")
	e.look("requests")
	e.Click(mark("tab-vpn"))
	e.Click(mark("row") + " td:nth-child(3)")
	e.Click(mark("write-/admin/update-vpn-request"))
	e.Type(mark("field-comment"), "Until June")
	e.send()
	e.says("Until June")
	e.gone(`[role="dialog"]`)
	e.Click(mark("row") + " td:nth-child(3)")
	e.Click(`[role="dialog"] ` + mark("bulk-/admin/update-vpn-request"))
	e.Click(mark("bulk-send"))
	e.gone(mark("row"))
	e.gone(`[role="dialog"]`)
}

// audited finds the actions in the audit.
func (e editor) audited(actions ...string) {
	e.t.Helper()
	e.to("/audit")
	e.See(mark("row"))
	for _, action := range actions {
		e.See(acted(action))
	}
}
