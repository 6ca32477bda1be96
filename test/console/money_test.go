package console

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// till is a story of the treasury in a browser.
type till struct {
	t   *testing.T
	s   *blackbox.Site
	n   *blackbox.Node
	tab *webtest.Tab
}

// The treasury views balances, adjusts one with a reason, and credits a pending deposit with the code of its
// authenticator. It sends a withdrawal, and blocks and unblocks an amount. The audit contains all of it.
func TestConsoleMoney(t *testing.T) {
	t.Parallel()
	s, who := blackbox.NewDemoSite(t), blackbox.DemoAdmin()
	m := &till{t, s, s.Start(), webtest.Browser(t)}
	consoleLogin(t, m.tab, m.n, who, "/balances")
	session, _ := m.n.Session(t, who)
	app := blackbox.Enrolled(t, m.n, who, blackbox.Headers{"x-auth": session})
	m.look()
	m.adjust()
	m.credit(app)
	m.send()
	m.block()
	m.open("/audit")
	for _, action := range []string{
		"ADJUST_BALANCE", "TRANSACTION_STATUS_START", "WITHDRAWAL_QUEUE_STATUS", "BLOCKAGE_ADD", "BLOCKAGE_UPDATE",
	} {
		m.filter("action", action)
		m.tab.See(acted(action))
	}
}

func (m *till) open(path string) {
	m.t.Helper()
	webtest.Value[bool](m.tab, `(() => { window.headingBefore = document.querySelector('h1'); return true; })()`)
	goTo(m.tab, path)
	// The previous screen may stay a while.
	m.tab.Until(`![null, window.headingBefore].includes(document.querySelector('h1'))`)
}

// filter waits for the answer with the filter: until then the rows of the list before are shown.
func (m *till) filter(name, value string) {
	m.t.Helper()
	webtest.Value[bool](m.tab, `(performance.clearResourceTimings(), true)`)
	filterBy(m.tab, name, value)
	m.tab.Until(fmt.Sprintf(`performance.getEntriesByType('resource').some(({ name }) =>
		new URL(name).searchParams.get(%q) === %q)`, name, value))
	m.tab.Until(drawn)
}

// field types into a field of a form.
func (m *till) field(name, value string) {
	m.t.Helper()
	m.tab.Type(fmt.Sprintf(`[data-testid="field-%s"]`, name), value)
}

// seen takes a picture of a screen and checks its accessibility.
func (m *till) seen(name string) {
	m.t.Helper()
	m.tab.Screenshot(m.t, filepath.Join(m.t.ArtifactDir(), "money", name+".png"))
	barriers(m.t, m.tab, name)
}

const (
	aRow     = `[data-testid="row"]`
	aChoice  = aRow + ` input[type="checkbox"]`
	theSend  = `[data-testid="send"]`
	theDiff  = `[data-testid="diff"]`
	theOpen  = `[role="dialog"]`
	noDialog = `!document.querySelector('[role="dialog"]')`
)

// acted selects an action in the list of the audit.
func acted(action string) string { return `[data-testid="row"] [data-action="` + action + `"]` }

// look opens the read-only screens.
func (m *till) look() {
	user := m.s.Text("SELECT id FROM users WHERE email = 'ayse@demo.example'")
	m.tab.See(aRow)
	m.filter("userId", user)
	m.tab.See(`[data-testid="small-money.networks"] tbody tr`)
	m.seen("balances")
	m.open("/statement")
	m.filter("userId", user)
	m.tab.See(aRow)
	m.seen("statement")
	m.open("/positions")
	m.filter("symbol", "BTC")
	m.tab.See(`[data-testid="chart"] canvas`)
	m.seen("positions")
	m.open("/providers")
	m.filter("provider", "spot")
	m.tab.Click(aRow)
	m.tab.See(`[data-testid="chart"] canvas`)
	m.tab.See(`[data-testid="small-money.readings"] tbody tr`)
	m.seen("providers")
}

// adjust corrects a balance. The form shows the account before and the change afterwards.
func (m *till) adjust() {
	user := m.s.Text("SELECT owner FROM account WHERE id LIKE 'user/1/%' ORDER BY owner LIMIT 1") // 1: BTC
	m.open("/adjust")
	m.field("userId", user)
	m.field("currencyCode", "BTC")
	m.field("networkCode", "BTC")
	m.field("amount", "0.00000001")
	m.field("reason", "A deposit that was booked short")
	m.tab.See(`[data-testid="owner"] a`)
	m.tab.Until(`document.querySelectorAll('[data-testid="preview"] [data-testid="diff"]').length === 2`)
	m.seen("adjust")
	m.tab.Click(theSend)
	m.tab.See(`[data-testid="made"]`)
	m.tab.See(theDiff)
	m.seen("adjusted")
	if got := m.s.Count("audit WHERE detail = 'C 0.00000001 BTC; A deposit that was booked short'"); got != 1 {
		m.t.Errorf("%d rows of the audit have the reason, want one", got)
	}
	if got := m.s.Count("deposit WHERE user_id = '" + user + "' AND tx_id LIKE 'console-%'"); got != 1 {
		m.t.Errorf("%d deposits of the adjustment, want one", got)
	}
}

// credit finalizes a pending deposit. The service requires the code of the authenticator.
func (m *till) credit(app *blackbox.Authenticator) {
	m.open("/transactions")
	m.filter("userId", m.s.Text("SELECT user_id FROM deposit WHERE status = -9 AND sender_info <> '' ORDER BY id LIMIT 1"))
	m.tab.Click(aChoice)
	m.tab.Click(`[data-testid="decide"]`)
	m.tab.See(`[data-testid="standing"]`)
	m.field("reason", "The sender is known")
	m.seen("deposits")
	m.tab.Click(theSend)
	m.tab.See(`[data-testid="otp"]`)
	m.tab.Type(`[data-testid="otp-code"] input`, app.Next(m.t))
	m.tab.See(theDiff)
	m.seen("credited")
	m.tab.Click(`[data-testid="close"]`)
	m.tab.Until(noDialog)
}

// send marks a withdrawal as sent.
func (m *till) send() {
	id := m.s.Text("SELECT id FROM withdrawal_queue WHERE status = 6 ORDER BY id LIMIT 1")
	m.open("/withdrawals")
	m.filter("id", id)
	m.tab.Click(aChoice)
	m.tab.Click(`[data-testid="bulk-/admin/update-wallet-withdrawal-crypto-queue"]`)
	m.tab.See(theOpen)
	m.field("reason", "Sent by hand")
	m.seen("withdrawals")
	m.tab.Click(`[data-testid="bulk-send"]`)
	m.tab.Until(noDialog)
	m.tab.See(`[data-state="success"]`)
	if got := m.s.Count("withdrawal_queue WHERE status = 4 AND id = '" + id + "'"); got != 1 {
		m.t.Error("the withdrawal has not gone out")
	}
}

// block makes a blockage and lifts it.
func (m *till) block() {
	user := m.s.Text("SELECT id FROM users WHERE email = 'omar@demo.example'")
	m.open("/blockages")
	m.tab.See(aRow)
	m.seen("blockages")
	m.tab.Click(`[data-testid="write-/blockage/insert-blockage-history"]`)
	m.field("userId", user)
	m.field("currencyCode", "BTC")
	m.field("amount", "0.0517")
	m.field("blockTypeId", "2")
	m.field("description", "Court order 2026/17")
	m.seen("block")
	m.tab.Click(theSend)
	m.tab.Until(noDialog)
	// The list may grow meanwhile, so the row of this blockage is selected by its amount.
	const mine = `[...document.querySelectorAll('[data-testid="row"]')].find((r) => r.innerText.includes('0.0517'))`
	m.tab.Until(mine + " !== undefined")
	webtest.Value[bool](m.tab, "("+mine+".click(), true)")
	m.tab.Click(`[data-testid="write-/blockage/update-blockage-history"]`)
	m.field("comment", "The order was withdrawn")
	m.tab.Click(theSend)
	blackbox.Until(m.t, 30*time.Second, "the blockage is released", func() bool {
		return m.s.Count("blockage WHERE status = 'released' AND user_id = '"+user+"'") == 1
	})
	// A filter reads another list with other columns. Without it the first list is shown again.
	const columns = `document.querySelectorAll('[data-testid="list"] thead th').length`
	all := webtest.Value[int](m.tab, columns)
	m.filter("userId", user)
	m.tab.Until(fmt.Sprintf("%s !== %d", columns, all))
	clickTo(m.tab, "/blockages")
	m.tab.Until(fmt.Sprintf("%s === %d", columns, all))
	m.tab.See(aRow)
}
