package console

import (
	"fmt"
	"testing"
	"time"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// till is a story of the treasury in a browser.
type till struct {
	viewer
	s *blackbox.Site
	n *blackbox.Node
}

// The treasury views balances, adjusts one with a reason, and credits a pending deposit with the code of its
// authenticator. It sends a withdrawal, and blocks and unblocks an amount. The audit contains all of it.
func TestConsoleMoney(t *testing.T) {
	t.Parallel()
	s, who := blackbox.NewDemoSite(t), blackbox.DemoAdmin()
	m := &till{viewer{webtest.Browser(t), t}, s, s.Start()}
	consoleLogin(t, m.Tab, m.n, who, "/balances")
	app := blackbox.Enrolled(t, m.n, who, m.n.Auth(t, who))
	m.reads()
	m.adjust()
	m.credit(app)
	m.send()
	m.block()
	m.to("/audit")
	for _, action := range []string{
		"ADJUST_BALANCE", "TRANSACTION_STATUS_START", "WITHDRAWAL_QUEUE_STATUS", "BLOCKAGE_ADD", "BLOCKAGE_UPDATE",
	} {
		m.filter("action", action)
		m.See(acted(action))
	}
}

// filter waits for the answer with the filter: until then the rows of the list before are shown.
func (m *till) filter(name, value string) {
	m.t.Helper()
	webtest.Value[bool](m.Tab, `(performance.clearResourceTimings(), true)`)
	filterBy(m.Tab, name, value)
	m.Until(fmt.Sprintf(`performance.getEntriesByType('resource').some(({ name }) =>
		new URL(name).searchParams.get(%q) === %q)`, name, value))
	m.Until(drawn)
}

// field types into a field of a form.
func (m *till) field(name, value string) {
	m.t.Helper()
	m.Type(fmt.Sprintf(`[data-testid="field-%s"]`, name), value)
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

// reads opens the read-only screens.
func (m *till) reads() {
	user := m.s.Text("SELECT id FROM users WHERE email = 'ayse@demo.example'")
	m.See(aRow)
	m.filter("userId", user)
	m.See(`[data-testid="small-money.networks"] tbody tr`)
	m.look("balances")
	m.to("/statement")
	m.filter("userId", user)
	m.See(aRow)
	m.look("statement")
	m.to("/positions")
	m.filter("symbol", "BTC")
	m.See(`[data-testid="chart"] canvas`)
	m.look("positions")
	m.to("/providers")
	m.filter("provider", "spot")
	m.Click(aRow)
	m.See(`[data-testid="chart"] canvas`)
	m.See(`[data-testid="small-money.readings"] tbody tr`)
	m.look("providers")
}

// adjust corrects a balance. A text that may mean two amounts is a question, and cannot be sent without an answer. The
// form shows the account before and the change afterwards.
func (m *till) adjust() {
	user := m.s.Text("SELECT owner FROM account WHERE id LIKE 'user/1/%' ORDER BY owner LIMIT 1") // 1: BTC
	m.to("/adjust")
	m.field("userId", user)
	m.field("currencyCode", "BTC")
	m.field("networkCode", "BTC")
	m.field("amount", "1,000")
	m.field("reason", "A deposit that was booked short")
	m.Until(`document.querySelector('[data-testid="send"]').disabled`)
	m.look("adjust-question")
	m.Click(`[data-testid="field-amount-means"][data-value="1"]`)
	m.See(`[data-testid="owner"] a`)
	m.Until(`document.querySelectorAll('[data-testid="preview"] [data-testid="diff"]').length === 2`)
	m.look("adjust")
	m.Click(theSend)
	m.See(`[data-testid="made"]`)
	m.See(theDiff)
	m.look("adjusted")
	m.s.Has(1, "audit WHERE detail = 'C 1 BTC; A deposit that was booked short'")
	m.s.Has(1, "deposit WHERE user_id = '"+user+"' AND tx_id LIKE 'console-%'")
}

// credit finalizes a pending deposit. The service requires the code of the authenticator.
func (m *till) credit(app *blackbox.Authenticator) {
	m.to("/transactions")
	m.filter("userId", m.s.Text("SELECT user_id FROM deposit WHERE status = -9 AND sender_info <> '' ORDER BY id LIMIT 1"))
	m.Click(aChoice)
	m.Click(`[data-testid="decide"]`)
	m.See(`[data-testid="standing"]`)
	m.field("reason", "The sender is known")
	m.look("deposits")
	m.Click(theSend)
	m.See(`[data-testid="otp"]`)
	m.Type(`[data-testid="otp-code"] input`, app.Next(m.t))
	m.See(theDiff)
	m.look("credited")
	m.Click(`[data-testid="close"]`)
	m.Until(noDialog)
}

// send marks a withdrawal as sent.
func (m *till) send() {
	id := m.s.Text("SELECT id FROM withdrawal_queue WHERE status = 6 ORDER BY id LIMIT 1")
	m.to("/withdrawals")
	m.filter("id", id)
	m.Click(aChoice)
	m.Click(`[data-testid="bulk-/admin/update-wallet-withdrawal-crypto-queue"]`)
	m.See(theOpen)
	m.field("reason", "Sent by hand")
	m.look("withdrawals")
	m.Click(`[data-testid="bulk-send"]`)
	m.Until(noDialog)
	m.See(`[data-state="success"]`)
	m.s.Has(1, "withdrawal_queue WHERE status = 4 AND id = '"+id+"'") // it has gone out
}

// block makes a blockage and lifts it.
func (m *till) block() {
	user := m.s.Text("SELECT id FROM users WHERE email = 'omar@demo.example'")
	m.to("/blockages")
	m.See(aRow)
	m.look("blockages")
	m.Click(`[data-testid="write-/blockage/insert-blockage-history"]`)
	m.field("userId", user)
	m.field("currencyCode", "BTC")
	m.field("amount", "0.0517")
	m.field("blockTypeId", "2")
	m.field("description", "Court order 2026/17")
	m.look("block")
	m.Click(theSend)
	m.Until(noDialog)
	// The list may grow meanwhile, so the row of this blockage is selected by its amount.
	const mine = `[...document.querySelectorAll('[data-testid="row"]')].find((r) => r.innerText.includes('0.0517'))`
	m.Until(mine + " !== undefined")
	webtest.Value[bool](m.Tab, "("+mine+".click(), true)")
	m.Click(`[data-testid="write-/blockage/update-blockage-history"]`)
	m.field("comment", "The order was withdrawn")
	m.Click(theSend)
	blackbox.Until(m.t, 30*time.Second, "the blockage is released", func() bool {
		return m.s.Count("blockage WHERE status = 'released' AND user_id = '"+user+"'") == 1
	})
	// A filter reads another list with other columns. Without it the first list is shown again.
	const columns = `document.querySelectorAll('[data-testid="list"] thead th').length`
	all := webtest.Value[int](m.Tab, columns)
	m.filter("userId", user)
	m.Until(fmt.Sprintf("%s !== %d", columns, all))
	clickTo(m.Tab, "/blockages")
	m.Until(fmt.Sprintf("%s === %d", columns, all))
	m.See(aRow)
}
