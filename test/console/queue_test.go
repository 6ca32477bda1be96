package console

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// The treasury sees whose withdrawals wait, the amount and since when. It resumes one, cancels another, which
// releases its hold, and sees that a third is decided. A rule of the money policy holds a withdrawal, which is
// approved, and a counter is reset. Then the administrator adds, rotates and removes the key of a service, changes the
// limits of a level, and sets the fee of a currency.
func TestConsoleWithdrawalQueue(t *testing.T) {
	t.Parallel()
	s := blackbox.NewDemoSite(t)
	who := blackbox.DemoAdmin()
	m := &till{viewer{webtest.Browser(t), t}, s, s.Start()}
	consoleLogin(t, m.Tab, m.n, who, "/withdrawals?statusCode=6")
	auth := m.n.Auth(t, who)
	app := blackbox.Enrolled(t, m.n, who, auth)
	m.resume(auth)
	m.cancel(auth)
	m.decided()
	m.counts(auth)
	m.holds(auth)
	m.serviceKey()
	m.level()
	m.fee(app)
	m.named()
}

// customer returns the name and the amount of the newest withdrawal in a status, as the row shows them.
func (m *till) customer(auth blackbox.Headers, status int) (id, name, amount string) {
	m.t.Helper()
	id = m.s.Text(fmt.Sprintf("SELECT id FROM withdrawal_queue WHERE status = %d ORDER BY id DESC LIMIT 1", status))
	name = m.s.Text("SELECT name || ' ' || surname FROM users WHERE id = (SELECT user_id FROM withdrawal_queue " +
		"WHERE id = '" + id + "')")
	var found []struct{ Amount json.Number }
	m.n.Ok(m.t, "GET", "/admin/get-withdrawal-crypto-queue?id="+id, nil, auth).Read(m.t, &found)
	return id, name, found[0].Amount.String()
}

// names waits until an element shows a customer and an amount.
func (m *till) names(element, name, amount string) {
	m.t.Helper()
	m.Until(fmt.Sprintf(`(() => { const text = document.querySelector(%q)?.innerText ?? '';
		return text.includes(%q) && text.includes(%q); })()`, element, name, amount))
}

func (m *till) resume(auth blackbox.Headers) {
	id, name, amount := m.customer(auth, 6)
	m.names(aRow, name, amount)
	m.See(aRow + ` time[title*="UTC"]`)
	m.look("queue")
	m.Click(aChoice)
	m.Click(`[data-testid="bulk-/admin/withdrawals/{id}/resume"]`)
	m.names(theOpen, name, amount)
	m.look("queue-resume")
	m.Click(`[data-testid="bulk-send"]`)
	m.Until(noDialog)
	m.s.Has(1, "withdrawal_queue WHERE status = 8 AND id = '"+id+"'") // queued again
}

func (m *till) cancel(auth blackbox.Headers) {
	id, name, amount := m.customer(auth, 7)
	m.filter("id", id)
	webtest.Value[bool](m.Tab, `(document.querySelector('[data-testid="clear"]').click(), true)`)
	m.Until(`!location.search.includes('id=')`)
	m.filter("id", id)
	m.names(aRow, name, amount)
	m.Click(aRow)
	m.Click(`[role="dialog"] [data-testid="bulk-/admin/withdrawals/{id}/cancel"]`)
	m.See(`[data-testid="bulk-send"][data-disabled]`) // the reason is required
	m.field("reason", "The customer asked for it")
	m.look("queue-cancel")
	m.Click(`[data-testid="bulk-send"]`)
	m.See(aRow + ` [data-state="cancelled"]`)
	m.Until(noDialog)
	m.s.Has(1, "withdrawal_queue WHERE status = 12 AND reason = 'The customer asked for it' AND id = '"+id+"'")
	hold := m.s.Text("SELECT hold_id FROM withdrawal WHERE id = '" + id + "'")
	m.s.Has(1, "hold WHERE id = '"+hold+"' AND state = 'released'")
}

// decided checks that a cancelled withdrawal has no action left, and that the screen says so.
func (m *till) decided() {
	m.Click(aChoice)
	m.See(`[data-testid="undecidable"]`)
	m.Until(`!document.querySelector('[data-testid^="bulk-/admin/withdrawals"]')`)
}

// holds adds a rule of the money policy after a rehearsal. From home it finds a withdrawal that the rule holds, reads
// the reason and approves it.
func (m *till) holds(auth blackbox.Headers) {
	made := m.n.Ok(m.t, "POST", "/admin/service-keys", `{"name":"till","role":"admin"}`, auth)
	key := blackbox.Headers{"service-auth": made.At(m.t, "data", "key")}
	m.to("/policy")
	m.Click(`[data-testid="write-/admin/money/rules"]`)
	m.field("label", "Every withdrawal")
	m.field("group", "admin")
	m.Until(`/held ([1-9]\d*) of \1 movements/.test(document.querySelector('[data-testid="rehearsal"]')?.innerText)`)
	m.look("policy-rehearsed")
	m.chooseOwn(`[role="dialog"] [data-testid="field-status"]`, "ACTIVE")
	m.Click(theSend)
	m.Until(noDialog)
	m.See(aRow + ` [data-state="ACTIVE"]`)
	id := m.withdraws(key)
	clickTo(m.Tab, "/")
	m.Click(`[data-testid="waits-home.held"]`) // the first click
	m.See(aRow)
	m.look("held")
	webtest.Value[bool](m.Tab, fmt.Sprintf(`(() => { const row = [...document.querySelectorAll(%q)]
		.find((r) => r.innerText.includes('Every withdrawal')); row.click(); return true; })()`, aRow))
	m.Until(`document.querySelector('[data-testid="missing"]')?.innerText.includes('0 of 1')`)
	m.Until(`document.querySelector('[data-testid="verdict"]')?.innerText.includes('Every withdrawal')`)
	m.look("held-case")
	m.Click(`[role="dialog"] [data-testid="bulk-/admin/withdrawals/{id}/resume"]`)
	m.Click(`[data-testid="bulk-send"]`)
	m.Until(noDialog)
	m.s.Has(1, "withdrawal_queue WHERE status = 8 AND id = '"+id+"'")
	m.n.Ok(m.t, "DELETE", "/admin/service-keys", `{"name":"till"}`, auth)
}

// withdraws requests a small withdrawal for any customer who may withdraw.
func (m *till) withdraws(key blackbox.Headers) string {
	users := m.s.Text("SELECT group_concat(owner) FROM (SELECT DISTINCT owner FROM account WHERE kind = 'user' LIMIT 60)")
	for i, user := range strings.Split(users, ",") {
		a := m.n.Do(m.t, "POST", "/integration/withdrawals", map[string]any{"externalId": fmt.Sprint("held-", i),
			"userId": user, "currencyCode": "BTC", "network": "BTC", "amount": 0.0002,
			"address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}, key)
		if a.Status == 200 {
			return a.At(m.t, "data", "id")
		}
	}
	m.t.Fatal("no customer may withdraw")
	return ""
}

// counts gives a caller the whole limit again, at the rule of the rate limit.
func (m *till) counts(auth blackbox.Headers) {
	m.n.Ok(m.t, "POST", "/admin/system/waf/rules", `{"label":"all-ips","type":"rate_limit","limit":100000,`+
		`"period":3600000,"targetEntityType":"IP","targetAllEntities":true,"targetAllResources":true,"status":"ACTIVE",`+
		`"expireAt":0}`, auth)
	m.to("/firewall")
	const row = `[...document.querySelectorAll('[data-testid="row"]')].find((r) => r.innerText.includes('all-ips'))`
	m.Until(row + ` !== undefined`)
	webtest.Value[bool](m.Tab, `(`+row+`.click(), true)`)
	m.See(`[data-testid="counter"]`)
	m.look("counters")
	m.Click(`[data-testid="counter"] [data-testid="write-/admin/system/waf/counters/reset"]`)
	m.field("reason", "A test by the office")
	m.Click(theSend)
	m.Until(`document.querySelectorAll('[role="dialog"]').length === 1`)
	m.s.Has(1, "audit WHERE action = 'FIREWALL_COUNTER_RESET'")
	m.Press("\x1b")
	m.Until(noDialog)
}

func (m *till) serviceKey() {
	m.to("/service-keys")
	m.Click(`[data-testid="write-/admin/service-keys"]`)
	m.field("name", "wallet")
	m.Click(`[data-testid="field-role"]`)
	m.Click(`[role="option"][value="admin"]`)
	m.look("service-key-add")
	m.Click(theSend)
	first := m.key()
	m.n.Do(m.t, "GET", "/integration/events", nil, blackbox.Headers{"service-auth": first}).Is(m.t, 200, "")
	m.See(aRow)
	m.Click(aRow)
	m.Click(`[data-testid="write-/admin/service-keys/rotate"]`)
	m.Click(theSend)
	if second := m.key(); second == first || !strings.HasPrefix(second, "wallet.") {
		m.t.Error("the key was not rotated")
	}
	m.Until(noDialog)
	m.Click(aRow)
	m.Click(`[data-testid="bulk-/admin/service-keys"]`)
	m.Click(`[data-testid="bulk-send"]`)
	m.Until(noDialog)
	m.Until(`!document.querySelector('[data-testid="row"]')`)
	m.n.Do(m.t, "GET", "/integration/events", nil, blackbox.Headers{"service-auth": first}).Is(m.t, 401, "UNAUTHENTICATED")
}

// key reads the value that is shown once, and closes it.
func (m *till) key() string {
	m.t.Helper()
	m.See(`[data-testid="once"]`)
	value := m.Text(`[data-testid="key"]`)
	m.look("service-key")
	m.Click(`[data-testid="stored"]`)
	m.Until(`!document.querySelector('[data-testid="once"]')`)
	return value
}

func (m *till) level() {
	m.to("/levels")
	m.Click(aRow)
	m.See(`[data-testid="field-sendLimitTRYDaily"]`)
	const empty = `(document.querySelector('[data-testid="field-receiveLimitTRYMonthly"]').value === '')`
	if !webtest.Value[bool](m.Tab, empty) {
		m.t.Log("the month of the first level has a limit of its own")
	}
	m.field("receiveLimitTRYMonthly", "7000000,5")
	m.See(theDiff)
	m.look("level")
	m.Click(theSend)
	m.Until(noDialog)
	storetest.Equal(m.t, m.s.Count("audit WHERE action = 'LEVEL_UPDATE'"), 1, "changes of levels, want one")
}

func (m *till) fee(app *blackbox.Authenticator) {
	want := m.minimums()
	want["BTC"] = "0.00000001"
	m.to("/fees")
	m.See(`[data-testid="write-/admin/update-parameters"]`)
	m.Click(`[data-testid="tab-minimums"]`)
	m.Click(`[data-testid="write-/admin/update-parameters"]`)
	m.Click(`[data-testid="field-currency"]`)
	m.Click(`[role="option"][value="BTC"]`)
	m.field("value", "0,00000001")
	m.See(theDiff)
	m.look("fee")
	m.Click(theSend)
	m.See(`[data-testid="otp"]`)
	m.Type(`[data-testid="otp-code"] input`, app.Next(m.t))
	m.Until(noDialog)
	m.names(aRow+":last-child", "BTC", "0.00000001")
	m.look("fees")
	storetest.Same(m.t, m.minimums(), want, "the minimums")
}

// minimums returns the stored minimum of a withdrawal for each currency.
func (m *till) minimums() map[string]json.Number {
	m.t.Helper()
	of := map[string]json.Number{}
	stored := m.s.Text("SELECT json FROM parameter WHERE code = 'WITHDRAWAL_MINIMUM'")
	storetest.Must(m.t, json.Unmarshal([]byte(stored), &of))
	return of
}

// named checks that every audited action has a label.
func (m *till) named() {
	text := storetest.Value(os.ReadFile("../../console/src/text/en/app.json"))(m.t)
	for action := range strings.SplitSeq(m.s.Text("SELECT group_concat(DISTINCT action) FROM audit"), ",") {
		storetest.Contains(m.t, string(text), `"act.`+action+`"`, "name of an audit action")
	}
}

// asks requests an adjustment.
func (m *till) asks(customer blackbox.Account) {
	for name, value := range map[string]string{"userId": customer.ID, "currencyCode": "BTC", "networkCode": "BTC",
		"amount": "0.5", "reason": "Booked short"} {
		m.field(name, value)
	}
	m.Click(theSend)
}

// A second person sees the effect of an adjustment and its requester, approves it with a code, and it is
// booked. A requester's own adjustment waits: the console explains that another person must approve it, and
// the requester can withdraw it.
func TestConsoleApprovals(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		d.Adjust(t, d.Boss)
		m := &till{viewer{webtest.Browser(t), t}, s, d.Node}
		consoleLogin(t, m.Tab, d.Node, d.Chief, "/approvals")
		m.Click(aRow)
		m.See(`[data-testid="summary"]`)
		m.Until(`document.querySelectorAll('[data-testid="change"] ins').length === 3`) // of both accounts
		m.Until(`document.querySelector('[data-testid="asked"]').innerText.includes('secret-1')`)
		m.look("approval")
		m.Click(`[data-testid="approve"]`)
		m.See(`[data-testid="method-MAIL"]`)
		m.Type(`[data-testid="code-MAIL"] input`, d.Code(t, d.Chief, "MAIL"))
		m.Until(`!document.querySelector('[data-testid="challenge"]')`)
		m.See(`[role="dialog"] [data-state="APPROVED"]`)
		// The time beside the status is that of the decision, not the future expiry.
		m.Until(`Date.parse(document.querySelector('[role="dialog"] time').dateTime) < Date.now()`)
		s.Has(1, "transfer")
		m.Click(`[role="dialog"] header button`)
		m.Until(noDialog)
		m.to("/adjust")
		m.asks(d.Customer)
		m.Until(`/before .*20\d\d/.test(document.querySelector('form [data-testid="waits"]')?.innerText)`)
		m.Click(`[data-testid="see-approvals"]`)
		m.See(`[data-state="PENDING"]`)
		m.Click(aRow)
		m.See(`[data-testid="own"]`)
		m.Click(`[data-testid="write-/admin/approvals/{id}/refuse"]`)
		m.field("reason", "The amount is wrong")
		m.Click(theSend)
		m.See(`[data-state="REFUSED"]`)
		m.look("taken back")
	})
}

// The request appears in the inbox of the second person. When that person approves it, the page of the requester
// shows the decision by itself, with a notification, and the number in the menu disappears.
func TestConsoleFollowsApprovals(t *testing.T) {
	blackbox.OnOne(t, "sqlite", func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		asker := &till{viewer{webtest.Browser(t), t}, s, d.Node}
		consoleLogin(t, asker.Tab, d.Node, d.Asker, "/adjust")
		asker.asks(d.Customer)
		asker.See(`form [data-decision="PENDING"]`)
		asker.See(`nav [data-testid="pending"]`) // without waiting for the next minute

		chief := webtest.Browser(t)
		consoleLogin(t, chief, d.Node, d.Chief, "")
		chief.See(`[data-testid="waits-home.approvals"] [data-testid="oldest"]`)
		chief.See(`[data-testid="waits-home.approvals"] [data-testid="first"]`)
		chief.Until(`document.querySelector('[data-testid="caught-up"]').innerText.includes('Withdrawals')`)
		barriers(t, chief, "inbox")
		chief.Click(`[data-testid="waits-home.approvals"]`)
		chief.Click(aRow)
		chief.Click(`[data-testid="approve"]`)
		chief.See(`[data-testid="method-MAIL"]`)
		chief.Type(`[data-testid="code-MAIL"] input`, d.Code(t, d.Chief, "MAIL"))
		chief.See(`[role="dialog"] [data-state="APPROVED"]`)
		chief.Until(`document.querySelector('[role="dialog"]').innerText.includes('Decided by')`)
		chief.Until(`!document.querySelector('nav [data-testid="pending"]')`)

		asker.See(`form [data-decision="APPROVED"]`)
		asker.Until(`document.querySelector('form [data-decision] time') !== null`)
		asker.Until(`[...document.querySelectorAll('[role="alert"]')].some((e) => e.innerText.includes('was executed'))`)
		asker.Until(`!document.querySelector('nav [data-testid="pending"]')`)
		asker.look("decided")
	})
}
