package console

import (
	"fmt"
	"strings"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// holds adds a rule of the money policy after a rehearsal. From home it finds a withdrawal that the rule holds, reads
// the reason and approves it.
func (m *till) holds(auth blackbox.Headers) {
	m.t.Helper()
	var made struct{ Data struct{ Key string } }
	m.n.Ok(m.t, "POST", "/admin/service-keys", `{"name":"till","role":"admin"}`, auth).Read(m.t, &made)
	key := blackbox.Headers{"service-auth": made.Data.Key}
	m.open("/policy")
	m.tab.Click(`[data-testid="write-/admin/money/rules"]`)
	m.field("label", "Every withdrawal")
	m.field("group", "admin")
	m.tab.Until(`/held ([1-9]\d*) of \1 movements/.test(document.querySelector('[data-testid="rehearsal"]')?.innerText)`)
	m.seen("policy-rehearsed")
	m.tab.Click(`[data-testid="field-status"]`)
	m.tab.Click(`[role="option"][value="ACTIVE"]`)
	m.tab.Click(theSend)
	m.tab.Until(noDialog)
	m.tab.See(aRow + ` [data-state="ACTIVE"]`)
	id := m.withdraws(key)
	clickTo(m.tab, "/")
	m.tab.Click(`[data-testid="waits-home.held"]`) // the first click
	m.tab.See(aRow)
	m.seen("held")
	webtest.Value[bool](m.tab, fmt.Sprintf(`(() => { const row = [...document.querySelectorAll(%q)]
		.find((r) => r.innerText.includes('Every withdrawal')); row.click(); return true; })()`, aRow))
	m.tab.Until(`document.querySelector('[data-testid="missing"]')?.innerText.includes('0 of 1')`)
	m.tab.Until(`document.querySelector('[data-testid="verdict"]')?.innerText.includes('Every withdrawal')`)
	m.seen("held-case")
	m.tab.Click(`[role="dialog"] [data-testid="bulk-/admin/withdrawals/{id}/resume"]`)
	m.tab.Click(`[data-testid="bulk-send"]`)
	m.tab.Until(noDialog)
	if got := m.s.Count("withdrawal_queue WHERE status = 8 AND id = '" + id + "'"); got != 1 {
		m.t.Error("the approved withdrawal is not queued")
	}
}

// withdraws requests a small withdrawal for any customer who may withdraw.
func (m *till) withdraws(key blackbox.Headers) string {
	m.t.Helper()
	users := m.s.Text("SELECT group_concat(owner) FROM (SELECT DISTINCT owner FROM account WHERE kind = 'user' LIMIT 60)")
	for i, user := range strings.Split(users, ",") {
		a := m.n.Do(m.t, "POST", "/integration/withdrawals", map[string]any{"externalId": fmt.Sprint("held-", i),
			"userId": user, "currencyCode": "BTC", "network": "BTC", "amount": 0.0002,
			"address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}, key)
		if a.Status == 200 {
			var of struct{ Data struct{ ID string } }
			a.Read(m.t, &of)
			return of.Data.ID
		}
	}
	m.t.Fatal("no customer may withdraw")
	return ""
}

// counts gives a caller the whole limit again, at the rule of the rate limit.
func (m *till) counts(auth blackbox.Headers) {
	m.t.Helper()
	m.n.Ok(m.t, "POST", "/admin/system/waf/rules", `{"label":"all-ips","type":"rate_limit","limit":100000,`+
		`"period":3600000,"targetEntityType":"IP","targetAllEntities":true,"targetAllResources":true,"status":"ACTIVE",`+
		`"expireAt":0}`, auth)
	m.open("/firewall")
	webtest.Value[bool](m.tab, `(document.querySelectorAll('[data-testid="row"]')[0].click(), true)`)
	m.tab.See(`[data-testid="counter"]`)
	m.seen("counters")
	m.tab.Click(`[data-testid="counter"] [data-testid="write-/admin/system/waf/counters/reset"]`)
	m.field("reason", "A test by the office")
	m.tab.Click(theSend)
	m.tab.Until(`document.querySelectorAll('[role="dialog"]').length === 1`)
	if got := m.s.Count("audit WHERE action = 'FIREWALL_COUNTER_RESET'"); got != 1 {
		m.t.Errorf("%d resets of counters, want one", got)
	}
}
