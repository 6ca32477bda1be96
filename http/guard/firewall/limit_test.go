package firewall_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
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
		storetest.Equal(t, s.evaluator.Tried.Load(), 5, "3 and 2 reported requests")
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

// D-WAF-21: another service counts its own requests under rules that name its key and a limit.
func TestLimitsOfServices(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const period = `"appId":"shop","period":60000,`
		s.add("ip", "rate_limit", period+`"limit":5,"targetEntityType":"IP","targetResources":["LIMIT orders"]`)
		s.add("all", "rate_limit", period+`"limit":8,"targetEntityType":"APP_ID","targetResources":["limit orders"]`)
		s.add("tried", "rate_limit", period+`"limit":1,"targetEntityType":"IP","targetResources":["LIMIT orders"],`+
			`"dryRun":true`)
		s.add("user", "rate_limit", period+`"limit":3,"targetEntityType":"USER_ID","targetResources":["LIMIT a|b"]`)
		s.add("land", "rate_limit", period+`"limit":3,"targetEntityType":"COUNTRY_CODE","targetResources":["LIMIT land"]`)
		s.add("paths", "rate_limit", period+`"limit":1,"targetEntityType":"IP","targetAllResources":true`)
		s.add("other", "rate_limit", `"appId":"bank","period":60000,"limit":1,"targetEntityType":"IP",`+
			`"targetResources":["LIMIT other"]`)
		ask := func(key, body string, status int, want string) {
			t.Helper()
			res, answer := s.Send("POST /limit", body, "service-auth", key)
			if res.StatusCode != 200 {
				answer = apitest.Refusal(answer)
			} else {
				answer = strings.TrimSuffix(strings.TrimPrefix(answer, `{"data":{`), "}}") + " " + res.Header.Get("RateLimit")
			}
			if res.StatusCode != status || strings.TrimSpace(answer) != want {
				t.Errorf("%s by %s:\n got %d %s\nwant %d %s", body, key, res.StatusCode, answer, status, want)
			}
		}
		state := func(allowed bool, limit, remaining, reset, retry int) string {
			return fmt.Sprintf(`"allowed":%t,"limit":%d,"remaining":%d,"resetMs":%d,"retryMs":%d`, allowed, limit, remaining,
				reset, retry)
		}
		shop := func(body, want string) { t.Helper(); ask("shop", body, 200, want) }
		ask("bank", `{"rule":"other","entity":"192.0.2.1"}`, 403, "FORBIDDEN") // the role has no grant
		for body, want := range map[string]string{
			`{"rule":"other","entity":"192.0.2.1"}`: "INVALID_FIELD rule",
			`{"rule":"paths","entity":"192.0.2.1"}`: "INVALID_FIELD rule",
			`{"rule":"orders","entity":"shop"}`:     "INVALID_FIELD entity",
			`{"rule":"land","entity":"192.0.2.1"}`:  "INVALID_FIELD entity",
			`{"rule":"a|b","entity":"~x"}`:          "INVALID_FIELD entity",
			`{"rule":"a|b","entity":" "}`:           "INVALID_FIELD entity",
		} {
			ask("shop", body, 400, want)
		}
		shop(`{"rule":"orders","entity":"192.0.2.1","peek":true}`, state(true, 5, 5, 0, 0)+` "ip";r=5;t=0, "all";r=8;t=0`)
		shop(`{"rule":"orders","entity":"192.0.2.1","cost":3}`, state(true, 5, 2, 60000, 0)+` "ip";r=2;t=60, "all";r=5;t=60`)
		s.now.Add(1000)
		shop(`{"rule":"orders","entity":"192.0.2.1","cost":3}`, state(false, 5, 2, 59000, 59000)+
			` "ip";r=2;t=59, "all";r=5;t=59`)
		shop(`{"rule":"orders","entity":"192.0.2.1","cost":3,"peek":true}`, state(false, 5, 2, 59000, 59000)+
			` "ip";r=2;t=59, "all";r=5;t=59`)
		shop(`{"rule":"orders","entity":"192.0.2.2","cost":5}`, state(true, 5, 0, 60000, 0)+` "ip";r=0;t=60, "all";r=0;t=59`)
		shop(`{"rule":"orders","entity":"192.0.2.1"}`, state(false, 8, 0, 59000, 59000)+` "ip";r=2;t=59, "all";r=0;t=59`)
		// An entity is the same in every spelling, and an address of IPv6 is counted by its /64.
		for i, entity := range []string{"2001:db8::1", "2001:db8::2", "2001:DB8::3"} {
			shop(fmt.Sprintf(`{"rule":"a|b","entity":%q}`, entity), state(true, 3, 2-i, 60000, 0)+
				fmt.Sprintf(` "user";r=%d;t=60`, 2-i))
		}
		shop(`{"rule":"a|b","entity":"a/b"}`, state(true, 3, 2, 60000, 0)+` "user";r=2;t=60`)
		// Operators explain, simulate and reset it like every rule.
		x := s.explain(`{"service":"shop","userId":"2001:db8::1","resource":"LIMIT a|b"}`)
		if x.Decision != "RATE_LIMITED" || *x.DecidedBy != "user" || x.Rules[0].Reason != "OTHER_RESOURCE" ||
			x.Rules[6].Reason != "OTHER_APPLICATION" {
			t.Errorf("%+v", x)
		}
		if x := s.explain(`{"userId":"a/b","resource":"LIMIT a|b"}`); x.Rules[3].Reason != "OTHER_APPLICATION" {
			t.Errorf("without the service: %+v", x)
		}
		s.As("admin").Wants("POST /admin/system/waf/counters/reset",
			`{"label":"user","entity":"2001:db8::9","reason":"r"}`, 200, `{"data":{"usedBefore":3}}`)
		shop(`{"rule":"a|b","entity":"2001:db8::1"}`, state(true, 3, 2, 60000, 0)+` "user";r=2;t=60`)
		s.As("admin").Wants("POST /admin/system/waf/rehearse", `{"label":"user","type":"rate_limit","expireAt":0,`+
			period+`"limit":1,"targetEntityType":"USER_ID","targetResources":["LIMIT a|b"]}`, 200,
			`{"considered":0,"stopped":0,"users":0,"accounts":0,"you":false,"truncated":false,"examples":[]}`)
		// Without a rule in force, every request is allowed.
		s.wants("PATCH", `{"label":"user","status":"INACTIVE"}`, 200, "{}")
		shop(`{"rule":"a|b","entity":"2001:db8::1"}`, state(true, 3, 3, 0, 0))
		for rule, want := range map[string]string{
			`"appId":"a shop","targetResources":["LIMIT x"]`:                              "INVALID_FIELD appId",
			`"targetResources":["LIMIT x"],"appId":"shop","type":"blacklist"`:             "INVALID_FIELD targetResources",
			`"appId":"shop","targetResources":["LIMIT ` + strings.Repeat("x", 129) + `"]`: "INVALID_FIELD targetResources",
			`"appId":"shop","targetResources":["LIMIT ü"]`:                                "INVALID_FIELD targetResources",
		} {
			if !strings.Contains(rule, `"type"`) {
				rule += `,"type":"rate_limit"`
			}
			s.wants("POST", `{"label":"bad","expireAt":0,"period":1,"limit":1,"targetEntityType":"IP",`+rule+`}`, 400, want)
		}
	})
}
