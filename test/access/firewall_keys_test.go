package access

import (
	"testing"

	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// If a rate limit has no free keys, further clients share one with their neighbours, and the operator sees it.
func TestRateLimitKeysAreBounded(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		addr := porttest.Free(t)
		n := s.Start("HTTP_TRUSTED_PROXIES=127.0.0.1", "FIREWALL_KEYS_PER_RULE=1", "METRICS_ADDR="+addr)
		blackbox.Rule(t, n, blackbox.Admin(t, s, n), "few", "rate_limit",
			map[string]any{"period": 600_000, "limit": 2, "targetResources": []string{"GET " + blackbox.KeysPath}})
		ask := func(ip string, status int, code string) {
			t.Helper()
			blackbox.From(t, n, ip).Ask("GET", blackbox.KeysPath, nil, nil).Is(t, status, code)
		}
		ask("203.0.113.7", 200, "") // this client has the only key
		ask("198.51.100.1", 200, "")
		ask("198.51.100.2", 200, "")
		ask("198.51.100.3", 429, "RATE_LIMITED")
		ask("203.0.113.7", 200, "")
		ask("203.0.113.7", 429, "RATE_LIMITED")
		if got := blackbox.Value(blackbox.Scrape(t, addr), "castellan_firewall_shared_keys_total", "rule=few"); got != 3 {
			t.Errorf("%v requests were counted under shared keys", got)
		}
	})
}
