package firewall_test

import (
	"strings"
	"testing"
)

// D-WAF-19: what a rule would have refused, from the rows that the section's own writes left;
// nothing is saved, and a caller without access to the rules sees nothing.
func TestRehearse(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const rule = `"label":"x","type":"blacklist","expireAt":0,"targetEntityType":"IP","targetEntities":["10.0.0.0/8"]`
		rehearse := func(body string, status int, want string) {
			t.Helper()
			res, answer := s.As("admin").Send("POST /admin/system/waf/rehearse", body, "X-Forwarded-For", admins)
			if res.StatusCode != status || !strings.Contains(answer, want) {
				t.Errorf("%s:\n got %d %s\nwant %d %s", body, res.StatusCode, answer, status, want)
			}
		}
		on := func(resource string) string { return `{` + rule + `,"targetResources":["` + resource + `"]}` }
		rehearse(on("POST /admin/system/waf/rules"), 200,
			`"considered":0,"stopped":0,"users":0,"accounts":0,"you":true,"truncated":false,"examples":[]`)
		s.add("one", "whitelist", `"targetEntityType":"IP"`)
		s.add("two", "whitelist", `"targetEntityType":"IP"`)
		s.wants("PATCH", `{"label":"two","status":"INACTIVE"}`, 200, "{}")
		rehearse(on("post /base/admin/system/waf/rules/"), 200, `"considered":2,"stopped":2,"users":0`)
		rehearse(on("PATCH /admin/system/waf/rules"), 200, `"action":"FIREWALL_RULE_UPDATE","ip":"10.0.0.1"`)
		rehearse(`{`+rule+`,"targetAllResources":true}`, 200, `"considered":3,"stopped":3`)
		_, list := s.As("admin").Send("GET /admin/system/waf/rules", "", "X-Forwarded-For", admins)
		if strings.Contains(list, `"x"`) {
			t.Errorf("it was saved: %s", list)
		}
		rehearse(`{`+strings.Replace(rule, "10.0.0.0/8", "here", 1)+`}`, 400, `"field":"targetEntities"`)
		rehearse(`{"label":"x","type":"rate_limit","expireAt":0,"targetEntityType":"IP"}`, 400, `"field":"period"`)
		s.from(admins, "POST /admin/system/waf/rehearse", 403, "x-auth", "user")
	})
}
