package access

import (
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

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
		blackbox.Rule(t, n, boss, "orders", "rate_limit", map[string]any{"appId": "shop", "period": 60_000, "limit": 9,
			"targetResources": []string{"LIMIT orders"}})
		blackbox.Rule(t, n, boss, "my self", "blacklist", map[string]any{"targetAllResources": true, "force": true})
		blackbox.Until(t, blackbox.Within(3), "the other node to follow", func() bool { return !allows(there) })
		n.Do(t, "GET", blackbox.RulesPath, nil, boss).Is(t, 403, "ACCESS_DENIED")

		s.Says(0, "waf list", "my self", "blacklist", "ACTIVE")
		storetest.Equal(t, s.Says(0, "waf list --status INACTIVE").Out, "", "waf list --status INACTIVE")
		for _, c := range [][]string{{"DENY GET " + blackbox.RulesPath + ", by my self\n", "GET " + blackbox.RulesPath},
			{"rate_limit  COUNTS\n", "LIMIT orders", "--service", "shop"}} {
			args := append([]string{"waf", "explain", "--ip", blackbox.Dutch}, c[1:]...)
			storetest.Contains(t, s.Succeeds("", args...).Out, c[0], "waf explain")
		}
		if got := s.CommandWith([]string{"FIREWALL_BYPASS_CIDRS=193.0.0.0/8"}, "", "waf", "explain",
			"GET "+blackbox.RulesPath, "--ip", blackbox.Dutch); !strings.HasPrefix(got.Out, "ALLOW ") {
			t.Errorf("waf explain for a bypassed network: %+v", got)
		}
		for _, wrong := range [][]string{{"waf", "explain", "rules"}, {"waf", "explain", "GET /x", "--ip", "here"},
			{"waf", "explain", "GET /x", "--country", "tr"}, {"waf", "disable", "none"},
			{"waf", "reset", "x", "192.0.2.1", "--reason", " "}} {
			if got := s.Command("", wrong...); got.Code != 1 || got.ErrOut == "" || strings.Contains(got.ErrOut, "no such") {
				t.Errorf("%v: %+v", wrong, got)
			}
		}
		if got := s.Command("", "waf", "disable", "my self"); got.Code != 0 || got.Out != "disabled my self\n" {
			t.Errorf("waf disable: %+v", got)
		}
		blackbox.Until(t, blackbox.Within(3), "every node to follow",
			func() bool { return allows(there) && allows(blackbox.From(t, n, blackbox.Turkey)) })
		n.Do(t, "GET", blackbox.RulesPath, nil, boss).Is(t, 200, "")
		s.Has(1, "audit WHERE action = 'FIREWALL_RULE_UPDATE' AND actor_id = 'operator' AND target = 'my self'")
	})
}
