package console

import (
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

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
		for name, value := range map[string]string{"userId": d.Customer.ID, "currencyCode": "BTC", "networkCode": "BTC",
			"amount": "0.5", "reason": "Booked short"} {
			m.field(name, value)
		}
		m.Click(theSend)
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
		for name, value := range map[string]string{"userId": d.Customer.ID, "currencyCode": "BTC", "networkCode": "BTC",
			"amount": "0.5", "reason": "Booked short"} {
			asker.field(name, value)
		}
		asker.Click(theSend)
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
