package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Precedence and resources, from outside (REQ-WAF-09…11, 16, D-WAF-08, 12).
func TestFirewallRulePrecedence(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false").Start()
		boss := blackbox.Admin(t, s, n)
		turk, dutchman := blackbox.From(t, n, blackbox.Turkey), blackbox.From(t, n, blackbox.Dutch)
		ask := func(p blackbox.Place, status int, headers blackbox.Headers) {
			t.Helper()
			p.T = t
			code := ""
			if status == 403 {
				code = "ACCESS_DENIED"
			}
			p.Ask("GET", blackbox.KeysPath, nil, headers).Is(t, status, code)
		}
		with := func(more map[string]any) map[string]any {
			more["targetResources"] = []string{"get " + blackbox.KeysPath + "/"}
			return more
		}
		blackbox.Rule(t, n, boss, "black", "blacklist", with(map[string]any{"targetEntities": []string{blackbox.Turkey}}))
		blackbox.Rule(t, n, boss, "white", "whitelist", with(map[string]any{"targetEntities": []string{blackbox.Turkey}}))
		ask(turk, 403, nil)
		ask(dutchman, 200, nil)
		blackbox.Rule(t, n, boss, "land", "whitelist_force",
			with(map[string]any{"targetEntityType": "COUNTRY_CODE", "targetEntities": []string{"TR"}}))
		ask(turk, 200, nil)
		ask(dutchman, 403, nil)
		ask(blackbox.From(t, n, blackbox.Nowhere), 403, nil)

		// A rule that targets users identifies them by their session; an ended session does not count.
		plain := s.AddUser("user")
		token, _ := n.Session(t, plain)
		me := blackbox.Headers{"x-auth": token}
		blackbox.Rule(t, n, boss, "people", "whitelist_force",
			with(map[string]any{"targetEntityType": "USER_ID", "targetEntities": []string{plain.ID}}))
		ask(dutchman, 200, me)
		ask(dutchman, 403, boss)
		n.Do(t, "POST", "/auth/logout", nil, me).Is(t, 200, "")
		ask(dutchman, 403, me)

		// The socket, unknown paths and the health checks are resources too.
		blackbox.Rule(t, n, boss, "wall", "blacklist", map[string]any{"targetEntities": []string{blackbox.States},
			"targetAllResources": true})
		american := blackbox.From(t, n, blackbox.States)
		for _, path := range []string{"/2fa", "/nowhere", "/docs", "/openapi.json", "/auth/sessions", blackbox.KeysPath +
			"/"} {
			american.Ask("GET", path, nil, nil).Is(t, 403, "ACCESS_DENIED")
		}
		for _, path := range []string{"/health/ready", "/health/live"} {
			american.Ask("GET", path, nil, nil).Is(t, 403, "ACCESS_DENIED")
			turk.Ask("GET", path, nil, nil).Is(t, 200, "")
			blackbox.From(t, n, blackbox.Nowhere).Ask("GET", path, nil, nil).Is(t, 200, "")
			n.Do(t, "GET", path, nil, nil).Is(t, 200, "")
		}

		// A refusal by a rule is audited.
		n.Stop()
		if got := s.Count("audit WHERE action = 'DENIED' AND detail LIKE 'ACCESS_DENIED%' AND target = 'GET " +
			"" + blackbox.KeysPath + "'"); got != 1 {
			t.Errorf("%d rows of a known user's refusal in the audit", got) // D-EXT-03
		}
		if got := s.Count("audit WHERE action = 'FIREWALL_RULE_ADD'"); got != 5 {
			t.Errorf("%d rules in the audit, want 5", got)
		}
	})
}

// Rules that one node or the command line writes apply on another node within a second (REQ-WAF-16). With
// explain and disable, operators can recover from a rule that blocks them.
func TestFirewallRulesReachOtherNodes(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "LIMITS_ENABLED=false").Start()
		boss := blackbox.Admin(t, s, n)
		other := n
		if s.Kind == "postgres" { // one process owns SQLite's file
			other = s.Start()
		}
		allows := func(p blackbox.Place) bool {
			a, err := p.Try("GET", blackbox.KeysPath, nil, p.With(nil))
			return err == nil && a.Status == 200
		}
		there := blackbox.From(t, other, blackbox.Dutch)
		if !allows(there) {
			t.Fatal("kept out without a rule")
		}
		blackbox.Rule(t, n, boss, "my self", "blacklist", map[string]any{"targetAllResources": true, "force": true})
		blackbox.Until(t, blackbox.Within(3), "the other node to follow", func() bool { return !allows(there) })
		n.Do(t, "GET", blackbox.RulesPath, nil, boss).Is(t, 403, "ACCESS_DENIED")

		if got := s.Command("", "waf", "list"); got.Code != 0 || !strings.Contains(got.Out, "my self") ||
			!strings.Contains(got.Out, "blacklist") ||
			!strings.Contains(got.Out, "ACTIVE") {
			t.Errorf("waf list: %+v", got)
		}
		if got := s.Command("", "waf", "list", "--status", "INACTIVE"); got.Code != 0 || got.Out != "" {
			t.Errorf("waf list --status INACTIVE: %+v", got)
		}
		if got := s.Command("", "waf", "explain", "GET "+blackbox.RulesPath, "--ip", blackbox.Dutch); got.Code != 0 ||
			!strings.HasPrefix(got.Out, "DENY GET "+blackbox.RulesPath+", by my self\n") {
			t.Errorf("waf explain: %+v", got)
		}
		if got := s.CommandWith([]string{"FIREWALL_BYPASS_CIDRS=193.0.0.0/8"}, "", "waf", "explain",
			"GET "+blackbox.RulesPath, "--ip",
			blackbox.Dutch); !strings.HasPrefix(
			got.Out,
			"ALLOW ",
		) {
			t.Errorf("waf explain for a bypassed network: %+v", got)
		}
		for _, wrong := range [][]string{{"waf", "explain", "rules"}, {"waf", "explain", "GET /x", "--ip", "here"},
			{"waf", "explain", "GET /x", "--country", "tr"}, {"waf", "disable", "none"}} {
			if got := s.Command("", wrong...); got.Code != 1 || got.ErrOut == "" {
				t.Errorf("%v: %+v", wrong, got)
			}
		}
		if got := s.Command("", "waf", "disable", "my self"); got.Code != 0 || got.Out != "disabled my self\n" {
			t.Errorf("waf disable: %+v", got)
		}
		blackbox.Until(t, blackbox.Within(3), "every node to follow",
			func() bool { return allows(there) && allows(blackbox.From(t, n, blackbox.Turkey)) })
		n.Do(t, "GET", blackbox.RulesPath, nil, boss).Is(t, 200, "")
		if got := s.Count("audit WHERE action = 'FIREWALL_RULE_UPDATE' AND actor_id = 'operator' AND target = 'my " +
			"self'"); got != 1 {
			t.Errorf("%d rows of the operator in the audit", got)
		}

		// The endpoint returns the same as the command, and the values of this node's counters.
		blackbox.Rule(t, n, boss, "limit", "rate_limit",
			map[string]any{"period": 60_000, "limit": 5, "targetResources": []string{"GET " + blackbox.KeysPath}})
		at := blackbox.From(t, n, blackbox.Dutch)
		at.Ask("GET", blackbox.KeysPath, nil, nil).Is(t, 200, "")
		var x struct {
			Decision  string
			DecidedBy *string
			Rules     []map[string]any
		}
		n.Ok(t, "POST", "/admin/system/waf/explain", map[string]any{"ip": blackbox.Dutch, "resource": "GET " +
			blackbox.KeysPath}, boss).
			Keys(t, "decision", "rules", "decidedBy").
			Read(t, &x)
		if len(x.Rules) != 2 || x.Decision != "ALLOW" || x.DecidedBy != nil || x.Rules[0]["reason"] != "INACTIVE" ||
			x.Rules[0]["used"] != nil {
			t.Fatalf("%+v", x)
		}
		if r := x.Rules[1]; len(r) != 7 || r["label"] != "limit" || r["type"] != "rate_limit" || r["matched"] != true ||
			r["reason"] != "WITHIN_LIMIT" || r["used"] != 1.0 ||
			r["limit"] != 5.0 ||
			r["resetMs"].(float64) < 1 ||
			r["resetMs"].(float64) > 60_000 {
			t.Errorf("%+v", r)
		}
		if got := s.Command("", "waf", "explain", "GET "+blackbox.KeysPath, "--ip", blackbox.Dutch); !strings.HasPrefix(
			got.Out,
			"ALLOW GET "+blackbox.KeysPath+"\n",
		) ||
			!strings.Contains(got.Out, "COUNTS") {
			t.Errorf("waf explain: %+v", got)
		}
	})
}
