package office

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// A rule of the money policy changes when a second administrator approves it, without mfa.four_eyes. The command on the
// host needs none; for a lone administrator it is the way out.
func TestMoneyRuleNeedsSecondAdministrator(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s, "MFA_FOUR_EYES=")
		const path, set = "/admin/money/rules", `{"label":"Large","status":"INACTIVE"}`
		d.Ok(t, "POST", path, `{"label":"Large","status":"ACTIVE","kinds":["WITHDRAWAL"],`+
			`"effect":{"type":"APPROVAL","group":"admin","required":2}}`, d.Boss)
		id := d.Ask(t, "PATCH", path, set, d.Boss)
		if r := d.Read(t, id); r.Summary != "MONEY_RULE_UPDATE Large: version 2 Status" || r.Request["status"] != "INACTIVE" {
			t.Errorf("%+v", r)
		}
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success {
			t.Errorf("%+v", got)
		}
		s.Exec(`UPDATE users SET status = 'blocked' WHERE id <> $1`, d.Asker.ID)
		for _, line := range []string{"PATCH " + `{"label":"Large","status":"TRIAL"}`, `DELETE {"label":"Large"}`} {
			method, body, _ := strings.Cut(line, " ")
			a := d.Do(t, method, path, body, d.Boss).Is(t, 409, "INVALID_STATE")
			storetest.Contains(t, string(a.Body), "castellan money rule", "the way out")
		}
		s.Succeeds("", "money", "rule", "status", "Large", "TRIAL")
		const line = "Large                           3  TRIAL  WITHDRAWAL  APPROVAL 2 of admin\n"
		storetest.Contains(t, s.Command("", "money", "rule", "list").Out, line)
		s.Has(1, "audit WHERE action = 'MONEY_RULE_UPDATE' AND actor_id = 'operator'")
	})
}

// The first start of a new platform puts the default rules in force, once. On a database of an earlier version, and in
// development mode, they are on trial, and the doctor names them.
func TestDefaultMoneyRules(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Empty().Production()
		s.Start().Stop()
		count := func(status string, want int) {
			t.Helper()
			got := s.Command("", "money", "rule", "list", "--status", status)
			if n := strings.Count(got.Out, "\n"); got.Code != 0 || n != want {
				t.Errorf("%d rules are %s, want %d: %+v", n, status, want, got)
			}
		}
		named := func() bool {
			return strings.Contains(s.Command("", "doctor").Out, "money policy: control off (default rules on trial: ")
		}
		count("ACTIVE", 12)
		if named() {
			t.Error("rules in force are named")
		}
		s.Succeeds("", "money", "rule", "remove", "Owner approves")
		s.Start().Stop()
		count("", 11)
		s.Succeeds("", "money", "rule", "template", "turkiye")
		count("TRIAL", 6)
		storetest.Contains(t, s.Command("", "money", "rule", "template", "turkiye").ErrOut, `"MASAK`,
			"a template was added twice")
		if named() {
			t.Error("the rules of a template are named")
		}
		s.Exec(`DELETE FROM money_rule`)
		s.Exec(`DELETE FROM seed WHERE name IN ('money-policy', 'money-policy-new')`)
		s.Start().Stop()
		count("TRIAL", 12)
		if !named() || s.Count("audit WHERE action = 'MONEY_RULE_ADD' AND actor_id = 'schedule'") != 2 {
			t.Error("rules on trial are not named, or not in the audit")
		}
	})
}

// Rules about levels and about decisions on withdrawals refuse a call, or make it wait for a second person of their
// group. While there is no other administrator, they ask for no approval.
func TestMoneyRulesForSettingsAndDecisions(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := newVault(t, s)
		third := s.AddUser("admin")
		d.Grants(t, third)
		group := fmt.Sprint("role-", d.N)
		rule := func(label, kind, match, effect string) {
			t.Helper()
			d.Ok(t, "POST", "/admin/money/rules", fmt.Sprintf(`{"label":%q,"status":"ACTIVE","kinds":[%q],"match":{%s},`+
				`"effect":{%s}}`, label, kind, match, effect), d.Boss)
		}
		level := fmt.Sprintf(`{"userId":%q,"levelId":0}`, d.Customer.ID)
		const path = "/level/update-level"
		d.Ok(t, "POST", path, strings.Replace(level, "0}", "1}", 1), d.Boss)
		id := d.made(t, "w1")
		d.move(t, id, "timeOut")

		rule("Fees", "SETTING", `"settings":["FEE"]`, `"type":"DENY"`) // not of a level
		rule("Levels", "SETTING", `"settings":["LEVEL"]`, `"type":"APPROVAL","required":1,"group":"`+group+`"`)
		rule("Sent", "DECISION", `"initiator":{"types":["OPERATOR"]}`, `"type":"DENY"`)
		first, second := d.Ask(t, "POST", path, level, d.Boss), d.Ask(t, "POST", path, level, d.Boss)
		if got := d.Approve(t, first, d.Chief, d.Other); got.Success || got.Code != "FORBIDDEN" {
			t.Errorf("approved outside of the group: %+v", got)
		}
		s.Has(1, "users WHERE id = $1 AND level = 1", d.Customer.ID)
		if got := d.Approve(t, second, third, d.Login(t, third)); !got.Success {
			t.Errorf("%+v", got)
		}
		s.Has(1, "users WHERE id = $1 AND level = 0", d.Customer.ID)
		for line, body := range map[string]string{
			"/admin/withdrawals/" + id + "/resume":         `{}`,
			"/admin/update-wallet-withdrawal-crypto-queue": `{"withdrawalId":"` + id + `","status":4,"currencyCode":"BTC"}`,
		} {
			d.Do(t, "POST", line, body, d.Boss).Is(t, 422, "POLICY_DENIED")
		}
		denied := s.Count("audit WHERE action = 'MONEY_DENY' AND target = 'DECISION'")
		if got := d.status(t, id); got != "timeOut" || denied != 2 {
			t.Errorf("refused: %s, %d rows of the audit", got, denied)
		}
		s.Exec(`UPDATE users SET status = 'blocked' WHERE id <> $1`, d.Asker.ID)
		d.Ok(t, "POST", path, strings.Replace(level, "0}", "1}", 1), d.Boss)
	})
}
