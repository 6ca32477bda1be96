package console

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
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

// adjust corrects a balance. The form shows the account before and the change afterwards.
func (m *till) adjust() {
	user := m.s.Text("SELECT owner FROM account WHERE id LIKE 'user/1/%' ORDER BY owner LIMIT 1") // 1: BTC
	m.to("/adjust")
	m.field("userId", user)
	m.field("currencyCode", "BTC")
	m.field("networkCode", "BTC")
	m.field("amount", "0.00000001")
	m.field("reason", "A deposit that was booked short")
	m.See(`[data-testid="owner"] a`)
	m.Until(`document.querySelectorAll('[data-testid="preview"] [data-testid="diff"]').length === 2`)
	m.look("adjust")
	m.Click(theSend)
	m.See(`[data-testid="made"]`)
	m.See(theDiff)
	m.look("adjusted")
	m.s.Has(1, "audit WHERE detail = 'C 0.00000001 BTC; A deposit that was booked short'")
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

// clerk adjusts balances in a browser.
type clerk struct {
	viewer
	s *blackbox.Site
}

// entry is a text in the amount field.
type entry struct {
	text   string
	pasted bool
	means  []string // if more than one, the field offers a choice
	sent   string   // the chosen and booked value; "": nothing is sent
}

const theAmount = `[data-testid="field-amount"]`

// The amount field accepts a comma and a point, groups, and Arabic digits, typed and pasted. It keeps every
// character and offers a choice if a text may mean two amounts. The service books the amount that the field
// showed.
func TestConsoleAmountField(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite").Set("LIMITS_ENABLED=false", "LOG_LEVEL=info")
	s.Start().Stop()
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	n := s.Start()
	boss, customer := s.Seeded("admin"), s.AddUser("user")
	c := clerk{viewer{webtest.Browser(t), t}, s}
	consoleLogin(t, c.Tab, n, boss, "/adjust?userId="+customer.ID)
	webtest.Value[bool](c.Tab, `(() => {
		const real = window.fetch;
		window.bodies = [];
		window.fetch = (to, init) => {
			if (init?.method === 'POST') bodies.push(init.body);
			return real(to, init);
		};
		return true;
	})()`)
	for _, by := range []struct {
		language string
		entries  []entry
	}{
		{"en", []entry{
			{text: "1,000", means: []string{"1000", "1"}, sent: "1000"},
			{text: "0.123456789"},
		}},
		{"tr", []entry{
			{text: " 3\u202f456,75 BTC ", pasted: true, sent: "3456.75"},
		}},
		{"ar", []entry{
			{text: "١٬٢٣٤٫٥", sent: "1234.5"},
		}},
	} {
		if by.language != "en" {
			fromChip(c.Tab, "language-"+by.language)
			c.Until(fmt.Sprintf(`document.documentElement.lang === %q`, by.language))
		}
		for i, e := range by.entries {
			c.enters(e, fmt.Sprintf("%s %d", by.language, i))
		}
	}
	c.looks()
}

// enters puts a text into the field, reads the field's interpretation, and books it.
func (c clerk) enters(e entry, reason string) {
	t := c.t
	t.Helper()
	c.Type(mark("field-currencyCode"), "BTC")
	c.Type(mark("field-networkCode"), "BTC")
	c.Type(mark("field-reason"), reason)
	if e.pasted {
		c.Paste(theAmount, e.text)
	} else {
		c.Keys(theAmount, e.text)
	}
	storetest.Equal(t, webtest.Value[string](c.Tab, `document.querySelector('`+theAmount+`').value`), e.text, reason,
		"the field holds")
	means := webtest.Value[[]string](c.Tab, `[...document.querySelectorAll('[data-testid="field-amount-means"]')]
		.map((e) => e.dataset.value)`)
	if !slices.Equal(means, e.means) && len(means)+len(e.means) > 0 {
		t.Errorf("%s: the field offers %q, want %q", reason, means, e.means)
	}
	if len(e.means) > 0 {
		c.unsent(reason)
		c.Click(fmt.Sprintf(`[data-testid="field-amount-means"][data-value=%q]`, e.sent))
	}
	if e.sent == "" {
		c.unsent(reason)
		c.Until(`document.querySelector('.reads[data-fault]')?.innerText.length > 10`)
		return
	}
	const sends = `document.querySelector('[data-testid="field-amount-sends"]').dataset.value`
	storetest.Equal(t, webtest.Value[string](c.Tab, sends), e.sent, reason, "the field shows")
	c.Click(theSend)
	c.See(mark("made"))
	body := webtest.Value[string](c.Tab, `bodies.at(-1)`)
	storetest.Contains(t, body, fmt.Sprintf(`"amount":%q`, e.sent), reason, "request")
	c.s.Has(1, fmt.Sprintf("audit WHERE detail = 'C %s BTC; %s'", e.sent, reason))
	c.Click(mark("again"))
}

// unsent checks that the form cannot be sent.
func (c clerk) unsent(reason string) {
	c.t.Helper()
	if !webtest.Value[bool](c.Tab, `document.querySelector('[data-testid="send"]').disabled`) {
		c.t.Errorf("%s: the form can be sent", reason)
	}
}

// looks shows the question and the value in all colours, on a phone.
func (c clerk) looks() {
	c.t.Helper()
	c.View(webtest.Phone)
	c.Type(mark("field-currencyCode"), "BTC")
	for name, text := range map[string]string{"question": "12.345", "value": "1234567,5", "fault": "1,2,3"} {
		c.Keys(theAmount, text)
		c.NoBarriers(name)
		c.OtherColours(name)
		c.Screenshot(c.t, filepath.Join(c.t.ArtifactDir(), "amount", name+".png"))
	}
}
