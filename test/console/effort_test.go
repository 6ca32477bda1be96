package console

import (
	"fmt"
	"path/filepath"
	"testing"

	"castellan/internal/blackbox"
	"castellan/web/webtest"
)

// Five frequent jobs of operators take no more clicks and keys than written here; docs/console-tour.md compares the
// numbers with the console before. Values that a person has to type, such as an address, count by their characters.
func TestConsoleEffort(t *testing.T) {
	t.Parallel()
	s := blackbox.NewDemoSite(t).Set("LIMITS_ENABLED=false", "MFA_FOUR_EYES="+blackbox.AdjustKey)
	s.Exec("UPDATE users SET aml_status = 'notRisky'") // withdrawals of risky accounts stay held
	s.Exec("UPDATE withdrawal_queue SET status = 6 WHERE id IN (SELECT id FROM withdrawal_queue LIMIT 20)")
	chief := s.AddUser("admin")
	e := &worker{Tab: webtest.Browser(t), t: t, s: s, n: s.Start()}
	who := blackbox.DemoAdmin()
	e.n.Do(t, "POST", "/auth/login", map[string]any{"email": "omar@demo.example", "password": "not the password"}, nil).
		Is(t, 401, "INVALID_CREDENTIALS")
	consoleLogin(t, e.Tab, e.n, who, "")
	e.Until(drawn)
	e.job("find why a login failed", webtest.Effort{Clicks: 2, Keys: 17}, e.findsFailedLogin)
	e.job("decide 20 withdrawals", webtest.Effort{Clicks: 4}, e.decidesWithdrawals)
	e.job("put a rule on trial", webtest.Effort{Clicks: 3, Keys: 43}, e.triesRule)
	e.job("adjust a balance", webtest.Effort{Clicks: 2, Keys: 47}, e.adjusts)
	e.Tab = webtest.Browser(t) // the requester stays logged in, or the request would fail
	consoleLogin(t, e.Tab, e.n, chief, "")
	e.Until(drawn)
	e.job("approve the adjustment", webtest.Effort{Clicks: 3, Keys: 6}, func() { e.approves(chief) })
}

// Reviewing 20 identities takes two keys each.
func TestConsoleEffortOfReviews(t *testing.T) {
	t.Parallel()
	const people = 20
	s := blackbox.NewSite(t, "sqlite").Set("LIMITS_ENABLED=false")
	c := newCases(t, s, people, 1)
	e := &worker{Tab: webtest.Browser(t), t: t, s: s, n: c.Node}
	consoleLogin(t, e.Tab, e.n, c.reviewer, "/")
	e.Until(drawn)
	e.job("review 20 identities", webtest.Effort{Clicks: 1, Keys: 2 + 2*people}, func() {
		e.Click(mark("nav-/kyc"))
		e.See(aRow)
		e.Press("j\r")
		for _, id := range c.ids {
			e.Until(caseIs(id))
			e.Press("1\r")
		}
		e.Until(`!document.querySelector('[data-testid="case"]')`)
	})
	blackbox.Until(t, blackbox.Within(30), "all are approved", func() bool {
		return s.Count("users WHERE kyc_confirm = 'manuelApproved' AND email LIKE 'case%'") == people
	})
}

// worker is an operator whose clicks and keys are counted.
type worker struct {
	*webtest.Tab
	t *testing.T
	s *blackbox.Site
	n *blackbox.Node
}

// job does one job and fails the test if it took more than most.
func (e *worker) job(name string, most webtest.Effort, do func()) {
	e.t.Helper()
	e.Reload() // a message of the job before could cover a button
	e.Until(`document.querySelector('[data-testid^="nav-/"]') !== null`)
	e.Until(drawn)
	before := e.Effort()
	do()
	took := e.Effort()
	took.Clicks -= before.Clicks
	took.Keys -= before.Keys
	e.t.Logf("%s: %d clicks, %d keys", name, took.Clicks, took.Keys)
	e.Screenshot(e.t, filepath.Join(e.t.ArtifactDir(), "effort", name+".png"))
	if took.Clicks > most.Clicks || took.Keys > most.Keys {
		e.t.Errorf("%s takes %+v, want at most %+v", name, took, most)
	}
}

// findsFailedLogin looks for the customer by address; the story shows the failed login with its reason.
func (e *worker) findsFailedLogin() {
	e.Click(mark("palette"))
	e.Type(`input[aria-label="Search"]`, "omar@demo.example")
	e.Click(`[data-testid^="person-"]`)
	e.Until(`document.querySelector('.customer h1')`)
	e.Until(drawn)
}

// decidesWithdrawals resumes all withdrawals that wait for a decision.
func (e *worker) decidesWithdrawals() {
	e.Click(mark("nav-/withdrawals"))
	e.See(aRow)
	e.Click(`thead input[type="checkbox"]`)
	e.Click(`[data-testid="bulk-/admin/withdrawals/{id}/resume"]`)
	e.Click(mark("bulk-send"))
	e.Until(noDialog)
}

// triesRule adds a rule, which is on trial until it is activated.
func (e *worker) triesRule() {
	e.Click(mark("nav-/firewall"))
	e.Click(mark("write-/admin/system/waf/rules"))
	e.Type(mark("field-targetEntities"), "203.0.113.7")
	e.Type(mark("field-targetResources"), "POST /auth/login")
	e.Type(mark("field-label"), "trial of a login")
	e.Until(`document.querySelector('[data-stopped]')`)
	e.Click(mark("send"))
	e.Until(noDialog)
}

func (e *worker) adjusts() {
	user := e.s.Text("SELECT owner FROM account WHERE id LIKE 'user/1/%' ORDER BY owner LIMIT 1")
	e.Click(fmt.Sprintf("[data-screens~=%q]", "/adjust"))
	for _, field := range [][2]string{{"userId", user}, {"currencyCode", "BTC"}, {"networkCode", "BTC"},
		{"amount", "0.5"}, {"reason", "Booked short"}} {
		e.Type(mark("field-"+field[0]), field[1])
	}
	e.Until(`document.querySelectorAll('[data-testid="preview"] [data-testid="diff"]').length === 2`)
	e.Click(theSend)
	e.See(`form [data-decision="PENDING"]`)
}

func (e *worker) approves(who blackbox.Account) {
	e.Click(mark("waits-home.approvals"))
	e.Click(aRow)
	e.Click(mark("approve"))
	e.See(mark("method-MAIL"))
	e.Type(`[data-testid="code-MAIL"] input`, e.n.Code(e.t, who, "MAIL"))
	e.See(`[role="dialog"] [data-state="APPROVED"]`)
}
