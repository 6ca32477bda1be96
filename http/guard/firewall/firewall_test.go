package firewall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
)

// Section 4.5 of the interface on the wire (REQ-WAF-01…07, 18, D-WAF-01, 02, 03, 09, 14, 17, 18).
func TestRules(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.wants("GET", "", 200, "[]")
		s.wants("POST", `{"label":"zz","type":"rate_limit","period":1000,"limit":5,"expireAt":0,`+
			`"targetEntityType":"IP"}`, 200, "{}")
		const zz = `{"appId":"API","label":"zz","type":"rate_limit","period":1000,"limit":5,"expireAt":0,` +
			`"targetEntityType":"IP","targetEntities":[],` +
			`"targetResources":[],"targetAllEntities":true,"targetAllResources":false,"status":"INACTIVE"}`
		s.wants("GET", "", 200, "["+zz+"]")
		s.wants("POST", `{"appId":"WEB","label":"a \"b\" ğ","type":"blacklist","expireAt":"1","targetEntityType":"IP",
			"targetEntities":["::ffff:192.0.2.7","192.0.2.7","10.1.2.3/8","2001:DB8::1","fe80::1%eth0"],
			"targetResources":["get /A/?x=1","HEAD /a","Post /base/p//%7eme/"],"status":"ACTIVE","dryRun":true}`,
			200, "{}")
		const second = `{"appId":"WEB","label":"a \"b\" ğ","type":"blacklist","period":null,"limit":null,` +
			`"expireAt":1,"targetEntityType":"IP",` +
			`"targetEntities":["192.0.2.7","10.0.0.0/8","2001:db8::1","fe80::1"],"targetResources":["GET /a",` +
			`"POST /p/~me"],"targetAllEntities":false,"targetAllResources":false,"status":"ACTIVE","dryRun":true}`
		s.wants("GET", "", 200, "["+zz+","+second+"]")
		s.wants("GET?appId=WEB", "", 200, "["+second+"]")
		s.wants("GET?status=INACTIVE&appId=API", "", 200, "["+zz+"]")
		s.wants("GET", `{"status":"ACTIVE"}`, 200, "["+second+"]")
		s.wants("GET?appId=none", "", 200, "[]")

		for _, at := range []string{"8640000000000000", "253402300800000", "1"} {
			s.wants("PATCH", `{"label":"a \"b\" ğ","expireAt":`+at+`}`, 200, "{}")
			s.wants("GET?appId=WEB", "", 200, "["+strings.Replace(second, `"expireAt":1,`, `"expireAt":`+at+`,`, 1)+"]")
		}

		// The label is unique over all applications.
		s.wants("POST", `{"appId":"WEB","label":"zz","type":"whitelist","expireAt":0,"targetEntityType":"IP"}`, 409,
			"RECORD_ALREADY_EXIST")

		// A value that was sent goes before the default of targetAllEntities.
		for label, c := range map[string]struct{ sent, all string }{
			"l1": {`"targetEntities":["u1"]`, "false"},
			"l2": {`"targetEntities":["u1"],"targetAllEntities":true`, "true"},
			"l3": {`"targetEntities":[],"targetAllEntities":false`, "false"},
			"l4": {`"targetEntities":null`, "true"},
			"l5": {`"targetEntities":["u1"],"targetAllEntities":null`, "false"},
		} {
			s.wants("POST", fmt.Sprintf(`{"appId":%q,"label":%q,"type":"whitelist","expireAt":0,`+
				`"targetEntityType":"USER_ID",%s}`, label, label, c.sent), 200, "{}")
			_, body := s.Send("GET /admin/system/waf/rules?appId="+label, "", "x-auth", "admin")
			if !strings.Contains(body, `"targetAllEntities":`+c.all) {
				t.Errorf("%s: %s", c.sent, body)
			}
		}

		// A rule about an administrator is another administrator's to write, before and after a change.
		clerk := func(method, body string, status int, want string) {
			t.Helper()
			res, answer := s.As("clerk").Send(method+" "+firewall.RulesPath, body, "X-Forwarded-For", admins)
			if res.StatusCode != status || apitest.Refusal(answer) != want {
				t.Errorf("%s %s by a clerk: %d %s", method, body, res.StatusCode, answer)
			}
		}
		const ofUsers = `"type":"rate_limit","period":1,"limit":1,"expireAt":0,"targetEntityType":"USER_ID","targetEntities":`
		s.wants("POST", `{"appId":"l6","label":"l6",`+ofUsers+`["admin"]}`, 200, "{}")
		clerk("PATCH", `{"label":"l6","targetEntities":["u1"]}`, 403, "FORBIDDEN")
		clerk("PATCH", `{"label":"l1","targetEntities":["u1","admin"]}`, 403, "FORBIDDEN")
		clerk("POST", `{"appId":"l7","label":"l7",`+ofUsers+`["u1","admin"]}`, 403, "FORBIDDEN")
		clerk("PATCH", `{"label":"none","limit":1}`, 404, "RECORD_NOT_FOUND")
		clerk("PATCH", `{"label":"l1","limit":0}`, 400, "INVALID_FIELD limit")

		// Faults, each named.
		const good = `"label":"x","type":"rate_limit","period":1,"limit":1,"expireAt":0,"targetEntityType":"IP"`
		for change, fields := range map[string]string{
			`"label":"a\u0007"`: "label", `"appId":" API"`: "appId", `"period":null`: "period", `"limit":null`: "limit",
			`"period":-1,"limit":-1`:      "period limit",
			`"expireAt":-1`:               "expireAt",
			`"expireAt":9007199254740992`: "expireAt",
			`"targetEntities":["x"]`:      "targetEntities", `"targetEntities":["1.2.3.4/33"]`: "targetEntities",
			`"targetEntities":["01.2.3.4"]`:                                  "targetEntities",
			`"targetEntities":[""]`:                                          "targetEntities",
			`"targetEntityType":"COUNTRY_CODE","targetEntities":["tr"]`:      "targetEntities",
			`"targetEntityType":"COUNTRY_CODE","targetEntities":["XX"]`:      "targetEntities",
			`"targetEntityType":"COUNTRY_CODE","targetEntities":["TR","EU"]`: "targetEntities",
			`"targetEntityType":"USER_ID","targetEntities":[" "]`:            "targetEntities",
			`"targetResources":["GET"]`:                                      "targetResources",
			`"targetResources":["/a"]`:                                       "targetResources",
			`"targetResources":["GET a"]`:                                    "targetResources",
			`"targetResources":["FETCH /a"]`:                                 "targetResources",
			`"targetResources":["GET *"]`:                                    "targetResources",
			`"targetResources":["GET /a /b"]`:                                "targetResources",
			`"targetResources":["GET /%zz"]`:                                 "targetResources",
			`"targetResources":["GET http://x/a"]`:                           "targetResources",
			`"targetResources":[""]`:                                         "targetResources",
		} {
			s.wants("POST", merge(t, "{"+good+"}", "{"+change+"}"), 400, "INVALID_FIELD "+fields)
		}
		s.wants("POST", `{"label":"x","type":"whitelist","period":0,"limit":1,"expireAt":0,"targetEntityType":"IP"}`,
			400, "INVALID_FIELD period")

		// Only what is sent changes; nothing is a change too.
		s.wants("PATCH", `{"label":"zz"}`, 200, "{}")
		s.wants("GET?appId=API", "", 200, "["+zz+"]")
		// not fields of this request
		s.wants("PATCH", `{"label":"zz","type":"blacklist","appId":"X","targetEntityType":"USER_ID"}`, 200, "{}")
		s.wants("GET?appId=API", "", 200, "["+zz+"]")
		s.wants("PATCH", `{"label":"zz","status":"ACTIVE","period":2678400000,"limit":1000000000,"expireAt":5,`+
			`"targetEntities":["192.0.2.1"],"targetResources":["DELETE /x/"],"targetAllEntities":false,"dryRun":true}`,
			200, "{}")
		s.wants("GET?appId=API", "", 200, `[{"appId":"API","label":"zz","type":"rate_limit","period":2678400000,`+
			`"limit":1000000000,"expireAt":5,"targetEntityType":"IP","targetEntities":["192.0.2.1"],`+
			`"targetResources":["DELETE /x"],"targetAllEntities":false,"targetAllResources":false,"status":"ACTIVE",`+
			`"dryRun":true}]`)
		s.wants("PATCH", `{"label":"zz","status":"INACTIVE","period":1000,"limit":5,"expireAt":0,"targetEntities":[],`+
			`"targetResources":[],"targetAllEntities":true,"targetAllResources":null,"dryRun":false}`, 200, "{}")
		s.wants("GET?appId=API", "", 200, "["+zz+"]")
		s.wants("PATCH", `{"label":"l1","period":7,"limit":8}`, 200, "{}") // unused by a whitelist, and kept
		s.wants("PATCH", `{"label":"l1","period":null}`, 200, "{}")
		if _, body := s.Send("GET /admin/system/waf/rules?appId=l1", "", "x-auth", "admin"); !strings.Contains(body,
			`"period":null,"limit":8,`) {
			t.Error(body)
		}
		for body, want := range map[string]string{
			`{"label":"zz","period":null}`:           "INVALID_FIELD period",
			`{"label":"zz","limit":null}`:            "INVALID_FIELD limit",
			`{"label":"zz","targetEntities":["TR"]}`: "INVALID_FIELD targetEntities",
			`{"label":"zz","targetResources":["x"]}`: "INVALID_FIELD targetResources",
			`{"label":"zz","expireAt":-5,"limit":0}`: "INVALID_FIELD limit expireAt",
		} {
			s.wants("PATCH", body, 400, want)
		}
		s.wants("PATCH", `{"label":"none","status":"ACTIVE"}`, 404, "RECORD_NOT_FOUND")
	})
}

// merge puts the members of one object over those of another.
func merge(t *testing.T, base, over string) string {
	t.Helper()
	m := map[string]json.RawMessage{}
	storetest.Must(t, json.Unmarshal([]byte(base), &m))
	storetest.Must(t, json.Unmarshal([]byte(over), &m))
	b := storetest.Value(json.Marshal(m))(t)
	return string(b)
}

// REQ-WAF-09, 10, 11, 14, 15, 16, 17; D-WAF-05, 07, 08, 15, 16; SEC-30, 31, 32.
func TestDecisions(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const a, tr, de = "GET /a", "192.0.2.1", "192.0.2.2"
		s.from(tr, a, 200)
		s.add("black", "blacklist", `"targetEntityType":"IP","targetEntities":["192.0.2.1","2001:db8::/32"],`+
			`"targetResources":["GET /a"]`)
		res := s.from(tr, a, 403)
		if body := fmt.Sprint(res.Header); strings.Contains(body, "black") {
			t.Errorf("the answer names the rule: %s", body)
		}
		_, body := s.Send(a, "", "X-Forwarded-For", tr)
		if !strings.Contains(body, `"code":"ACCESS_DENIED"`) || strings.Contains(body, "black") {
			t.Errorf("refused with %s", body)
		}
		s.from(de, a, 200)
		for _, ip := range []string{"::ffff:192.0.2.1", "::ffff:c000:201", "2001:db8:7::1", "203.0.113.1, 192.0.2.1"} {
			s.from(ip, a, 403)
		}
		s.from("192.0.2.1, 203.0.113.1", a, 200) // what a client writes further left is not looked at
		s.from(de, a, 200, "X_Forwarded_For", tr, "X-Real-IP", tr, "True-Client-IP", tr)
		// By the route that is served, however it is spelled.
		s.from(tr, "HEAD /a", 403)
		s.from(tr, "GET /a?b=c", 403)
		s.from(tr, "GET /a/", 404)
		s.from(tr, "GET //a", 404)
		s.from(tr, "GET /A", 404)
		s.from(tr, "GET /%61", 404)
		s.from(tr, "POST /a", 401)
		s.from(tr, "GET /p/1", 200)

		// A whitelist beside it changes nothing, a whitelist_force that targets the
		// client does, and keeps all others out.
		s.add("white", "whitelist", `"targetEntityType":"IP","targetResources":["GET /a"]`)
		s.from(tr, a, 403)
		s.from(de, a, 200)
		s.add("force", "whitelist_force", `"targetEntityType":"COUNTRY_CODE","targetEntities":["TR"],`+
			`"targetResources":["GET /a","GET /p/{id}","GET /socket"]`)
		s.from(tr, a, 200)
		s.from(de, a, 403)
		s.from("203.0.113.1", a, 403) // its country is not known
		s.from(de, "GET /p/77", 403)
		s.from(de, "GET /socket", 403)
		s.from(tr, "GET /socket", 200)
		s.from(de, "POST /a", 401)
		s.add("force "+
			"users", "whitelist_force", `"targetEntityType":"USER_ID","targetEntities":["user"],`+
			`"targetResources":["GET /a"]`)
		s.from(de, a, 200, "x-auth", "user")
		s.from(de, a, 403, "x-auth", "admin")
		s.from(de, a, 403, "x-auth", "nonsense")
		s.from(de, a, 403, "x-auth", "gone")

		// Neither inactive, nor expired, nor of another application.
		s.wants("PATCH", `{"label":"force users","status":"INACTIVE"}`, 200, "{}")
		s.from(de, a, 403, "x-auth", "user")
		s.wants("PATCH", `{"label":"force","expireAt":1000001}`, 200, "{}")
		s.from(de, a, 403)
		s.now.Add(1)
		s.from(de, a, 200)
		s.from(tr, a, 403)
		s.wants("PATCH", `{"label":"black","status":"INACTIVE"}`, 200, "{}")
		s.from(tr, a, 200)
		s.wants("PATCH", `{"label":"black","status":"ACTIVE"}`, 200, "{}")
		s.from(tr, a, 403)
		s.wants("POST", `{"appId":"WEB","label":"web","type":"blacklist","expireAt":0,"status":"ACTIVE",`+
			`"targetEntityType":"IP","targetAllResources":true}`, 200, "{}")
		s.from(de, a, 200)
		// A rule without a target resource never matches; an unknown user is targeted by no blacklist.
		s.add("nothing", "blacklist", `"targetEntityType":"IP"`)
		s.add("users", "blacklist", `"targetEntityType":"USER_ID","targetResources":["POST /a"]`)
		s.from(de, "POST /a", 401)
		s.from(de, "POST /a", 403, "x-auth", "user")

		// Everything that is served, and what is not; preflights are exempt.
		s.add("all", "blacklist", `"targetEntityType":"IP","targetEntities":["203.0.113.0/24"],`+
			`"targetAllResources":true`)
		for _, line := range []string{a, "GET /nowhere", "PUT /a", "GET /a/%2e", "GET /socket", "BREW /a"} {
			s.from("203.0.113.9", line, 403)
		}
		// Of the health checks a blacklist keeps its clients away, and no other rule; and
		// nothing keeps this machine away, or the operator's networks.
		const live = "GET /health/live"
		s.from("203.0.113.9", live, 403)
		s.from(tr, live, 200)
		s.add("once", "rate_limit", `"period":100000,"limit":1,"targetEntityType":"IP","targetResources":["`+live+`"]`)
		s.add("insiders", "whitelist_force", `"targetEntityType":"IP","targetEntities":["10.0.0.0/8"],`+
			`"targetResources":["`+live+`"]`)
		for range 3 {
			s.from(tr, live, 200)
		}
		s.wants("PATCH", `{"label":"insiders","status":"INACTIVE"}`, 200, "{}")
		s.wants("PATCH", `{"label":"once","status":"INACTIVE"}`, 200, "{}")
		s.add("typo", "blacklist", `"targetEntityType":"IP","targetEntities":["0.0.0.0/0","::/0"],`+
			`"targetResources":["`+live+`"]`)
		s.from(tr, live, 403)
		s.from("127.0.0.1", live, 200)
		s.from("::1", live, 200)
		s.from("198.51.100.7", live, 200)
		// The way back (D-WAF-12).
		s.add("bypassed", "blacklist", `"targetEntityType":"IP","targetEntities":["198.51.100.0/24"],`+
			`"targetAllResources":true`)
		s.from("198.51.100.7", a, 200)
	})
}

// D-WAF-10: the table, at the edge, with its headers.
func TestRateLimit(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add("three", "rate_limit", `"period":2000,"limit":3,"targetEntityType":"IP","targetResources":["GET /a",`+
			`"GET /p/{id}"]`)
		start := s.now.Load()
		for i, row := range []struct {
			at     int64
			status int
			state  string
			retry  string
		}{{0, 200, "r=2;t=2", ""}, {500, 200, "r=1;t=2", ""}, {1000, 200, "r=0;t=1", ""}, {1500, 429, "r=0;t=1", "1"},
			{2001, 200, "r=0;t=1", ""}, {2100, 429, "r=0;t=1", "1"}, {2501, 200, "r=0;t=1", ""}} {
			s.now.Store(start + row.at)
			// one counter over all resources of the rule (D-WAF-04)
			line := []string{"GET /a", "HEAD /a", "GET /p/1", "GET /a?x"}[i%4]
			res := s.from("192.0.2.1", line, row.status)
			if got := res.Header.Get("RateLimit"); got != `"three";`+row.state ||
				res.Header.Get("RateLimit-Policy") != `"three";q=3;w=2` || res.Header.Get("Retry-After") != row.retry {
				t.Errorf("at %d: %q, %q, Retry-After %q", row.at, got, res.Header.Get("RateLimit-Policy"),
					res.Header.Get("Retry-After"))
			}
		}
		// Another client has a counter of its own; another resource none.
		s.from("192.0.2.2", "GET /a", 200)
		if res := s.from("192.0.2.1", "GET /socket", 200); res.Header.Get("RateLimit") != "" {
			t.Errorf("RateLimit %q", res.Header.Get("RateLimit"))
		}
		// SEC-32: a /64 is one client.
		for i, want := range []int{200, 200, 200, 429} {
			s.from(fmt.Sprintf("2001:db8::%x", i+1), "GET /a", want)
		}
		s.from("2001:db8:0:1::1", "GET /a", 200)
		// A changed limit applies to the requests counted already (D-WAF-14).
		s.wants("PATCH", `{"label":"three","limit":5}`, 200, "{}")
		if res := s.from("2001:db8::9", "GET /a", 200); res.Header.Get("RateLimit") != `"three";r=1;t=2` {
			t.Errorf("RateLimit %q", res.Header.Get("RateLimit"))
		}
		s.wants("PATCH", `{"label":"three","limit":2}`, 200, "{}")
		s.from("2001:db8::9", "GET /a", 429)
		// A whitelist exempts from limits (D-WAF-05).
		s.add("exempt", "whitelist", `"targetEntityType":"IP","targetEntities":["2001:db8::9"],`+
			`"targetResources":["GET /a"]`)
		if res := s.from("2001:db8::9", "GET /a", 200); res.Header.Get("RateLimit") != "" {
			t.Error("an exempt client is counted")
		}
		s.from("2001:db8::8", "GET /a", 429)
	})
}
