package firewall_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// D-WAF-06: several limits on one request are one decision.
func TestSeveralLimits(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add("ğ", "rate_limit", `"period":1000,"limit":2,"targetEntityType":"IP","targetResources":["GET /a"]`)
		s.add(`q"`, "rate_limit", `"period":60000,"limit":3,"targetEntityType":"COUNTRY_CODE",`+
			`"targetResources":["GET /a"]`)
		s.add("u", "rate_limit", `"period":60000,"limit":100,"targetEntityType":"USER_ID","targetAllResources":true`)
		res := s.from("192.0.2.1", "GET /a", 200, "x-auth", "user")
		if got := res.Header.Get("RateLimit-Policy"); !strings.Contains(got, `"rule-2faf88c3";q=2;w=1`) ||
			!strings.Contains(got, `"q\"";q=3;w=60`) || !strings.Contains(got, `"u";q=100;w=60`) ||
			strings.Count(got, ", ") != 2 {
			t.Errorf("RateLimit-Policy %q", got)
		}
		if got := res.Header.Get("RateLimit"); !strings.Contains(got, `;r=1;t=1`) ||
			!strings.Contains(got, `"q\"";r=2;t=60`) || !strings.Contains(got, `"u";r=99;t=60`) {
			t.Errorf("RateLimit %q", got)
		}
		s.from("192.0.2.1", "GET /a", 200)
		for range 5 { // refused by the first, so not counted by the second
			s.from("192.0.2.1", "GET /a", 429)
		}
		s.now.Add(1000)
		s.from("192.0.2.1", "GET /a", 200)
		// Both refuse now in turn: the longer wait is returned.
		if res := s.from("192.0.2.1", "GET /a", 429, "x-auth", "user"); res.Header.Get("Retry-After") != "59" {
			t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
		}
		if res := s.from("192.0.2.1", "GET /p/1", 200, "x-auth",
			"user"); res.Header.Get("RateLimit") != `"u";r=98;t=59` {
			t.Errorf("RateLimit %q: a refused request was counted", res.Header.Get("RateLimit"))
		}
		// An invalid session counts as no session (D-GEN-19).
		if res := s.from("192.0.2.1", "GET /p/1", 200, "x-auth", "gone"); res.Header.Get("RateLimit") != "" {
			t.Errorf("RateLimit %q", res.Header.Get("RateLimit"))
		}
	})
}

// However many requests run concurrently, a limit of N admits N.
func TestLimitIsExact(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add("n", "rate_limit", `"period":60000,"limit":50,"targetEntityType":"IP","targetResources":["GET /a"]`)
		s.add("m", "rate_limit", `"period":60000,"limit":120,"targetEntityType":"COUNTRY_CODE",`+
			`"targetAllResources":true`)
		s.add("o", "rate_limit", `"period":60000,"limit":70,"targetEntityType":"IP","targetAllResources":true`)
		var admitted, refused atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 25 {
					res, _ := s.Send("GET /a", "", "X-Forwarded-For", "192.0.2.1")
					switch res.StatusCode {
					case 200:
						admitted.Add(1)
					case 429:
						refused.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 50 || refused.Load() != 150 {
			t.Errorf("admitted %d, refused %d of 200", admitted.Load(), refused.Load())
		}
		if got := s.from("192.0.2.1", "GET /socket", 200).Header.Get("RateLimit"); !strings.Contains(got,
			`"m";r=69;`) || !strings.Contains(got, `"o";r=19;`) {
			t.Errorf("RateLimit %q", got)
		}
	})
}

// dryRun: a rule on trial counts and reports, and refuses nothing.
func TestDryRun(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add("b", "blacklist", `"targetEntityType":"IP","targetEntities":["192.0.2.1"],"targetAllResources":true,`+
			`"dryRun":true`)
		s.add("r", "rate_limit", `"period":60000,"limit":1,"targetEntityType":"IP","targetEntities":["192.0.2.2"],`+
			`"targetResources":["GET /a"],"dryRun":true`)
		for range 3 {
			s.from("192.0.2.1", "GET /a", 200)
			if res := s.from("192.0.2.2", "GET /a", 200); res.Header.Get("RateLimit") != "" {
				t.Errorf("RateLimit %q", res.Header.Get("RateLimit"))
			}
		}
		if n := s.evaluator.Tried.Load(); n != 5 {
			t.Errorf("%d requests reported, want 3 and 2", n)
		}
		x := s.explain(`{"ip":"192.0.2.2","resource":"GET /a"}`)
		if x.Decision != "ALLOW" || x.DecidedBy != nil || x.Rules[1].Reason != "DRY_RUN" || *x.Rules[1].Used != 1 {
			t.Errorf("%+v", x)
		}
		s.wants("PATCH", `{"label":"b","dryRun":false}`, 200, "{}")
		s.from("192.0.2.1", "GET /a", 403)
	})
}

// D-WAF-12 on the wire: rules hold for their own endpoints too.
func TestLockout(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const all = `"type":"blacklist","expireAt":0,"status":"ACTIVE","targetEntityType":"IP",` +
			`"targetAllResources":true`
		s.wants("POST", `{"label":"me",`+all+`}`, 400, "INVALID_FIELD force")
		s.wants("GET", "", 200, "[]")
		s.wants("POST", `{"label":"me",`+all+`,"force":true}`, 200, "{}")
		s.wants("GET", "", 403, "ACCESS_DENIED")
		res, body := s.Send("PATCH /admin/system/waf/rules", `{"label":"me","status":"INACTIVE"}`, "x-auth", "admin",
			"X-Forwarded-For", "198.51.100.1")
		if res.StatusCode != 200 {
			t.Errorf("from a bypassed network: %d %s", res.StatusCode, body)
		}
		s.wants("PATCH", `{"label":"me","status":"ACTIVE"}`, 400, "INVALID_FIELD force")
		s.wants("PATCH", `{"label":"me","status":"ACTIVE","force":false}`, 400, "INVALID_FIELD force")
		s.wants("PATCH", `{"label":"me","status":"ACTIVE","force":true}`, 200, "{}")
		s.wants("PATCH", `{"label":"me","status":"INACTIVE"}`, 403, "ACCESS_DENIED")
	})
}
