package firewall_test

import (
	"fmt"
	"strings"
	"testing"

	"castellan/http/apitest"
)

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
			`{"rule":"other","entity":"192.0.2.1"}`:               "INVALID_FIELD rule",
			`{"rule":"paths","entity":"192.0.2.1"}`:               "INVALID_FIELD rule",
			`{"rule":"orders","entity":"shop"}`:                   "INVALID_FIELD entity",
			`{"rule":"land","entity":"192.0.2.1"}`:                "INVALID_FIELD entity",
			`{"rule":"a|b","entity":"~x"}`:                        "INVALID_FIELD entity",
			`{"rule":"a|b","entity":" "}`:                         "INVALID_FIELD entity",
			`{"rule":"orders","entity":"192.0.2.1","cost":0}`:     "INVALID_FIELD cost",
			`{"rule":"orders","entity":"192.0.2.1","cost":1001}`:  "INVALID_FIELD cost",
			`{"rule":"orders","entity":"192.0.2.1","peek":"yes"}`: "INVALID_FIELD peek",
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
