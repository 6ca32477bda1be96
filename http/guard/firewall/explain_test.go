package firewall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

type explanation struct {
	Decision  string
	DecidedBy *string
	Rules     []struct {
		Label, Type, Reason  string
		Matched              bool
		Used, Limit, ResetMs *int64
	}
}

func (s *service) explain(body string) (x explanation) {
	s.t.Helper()
	res, answer := s.Send("POST /admin/system/waf/explain", body, "x-auth", "admin", "X-Forwarded-For", admins)
	if res.StatusCode != 200 {
		s.t.Fatalf("%s: %d %s", body, res.StatusCode, answer)
	}
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &x))
	return x
}

// D-EXT-01: what would decide about a request, and why the rest does not.
func TestExplain(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		if x := s.explain(`{"resource":"GET /a"}`); x.Decision != "ALLOW" || x.DecidedBy != nil || x.Rules == nil {
			t.Errorf("without rules: %+v", x)
		}
		s.add("limit", "rate_limit", `"period":60000,"limit":2,"targetEntityType":"IP","targetResources":["GET /a"]`)
		s.add("black", "blacklist", `"targetEntityType":"IP","targetEntities":["192.0.2.2"],`+
			`"targetResources":["GET /a"]`)
		s.add("force", "whitelist_force", `"targetEntityType":"USER_ID","targetEntities":["u1"],`+
			`"targetResources":["GET /p/{id}"]`)
		s.wants("POST", `{"label":"off","type":"blacklist","expireAt":0,"targetEntityType":"IP",`+
			`"targetAllResources":true}`, 200, "{}")
		s.add("old", "blacklist", `"targetEntityType":"IP","targetAllResources":true,"dryRun":true`)
		s.wants("PATCH", `{"label":"old","expireAt":1}`, 200, "{}")
		s.wants("POST", `{"appId":"WEB","label":"web","type":"blacklist","expireAt":0,"status":"ACTIVE",`+
			`"targetEntityType":"IP","targetAllResources":true}`, 200, "{}")
		s.add("land", "whitelist", `"targetEntityType":"COUNTRY_CODE","targetEntities":["DE"],`+
			`"targetResources":["GET /a"]`)
		for range 2 {
			s.from("192.0.2.1", "GET /a", 200)
		}
		for body, want := range map[string]string{
			`{"ip":"192.0.2.1","resource":"get /A/"}`: "RATE_LIMITED limit: OVER_LIMIT 2 60000, OTHER_ENTITY, OTHER_RESOURCE, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, OTHER_ENTITY",
			`{"ip":"192.0.2.9","resource":"GET /a"}`: "ALLOW : WITHIN_LIMIT 0 0, OTHER_ENTITY, OTHER_RESOURCE, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, UNKNOWN_ENTITY",
			`{"ip":"192.0.2.2","resource":"GET /a"}`: "DENY black: OUTRANKED, DECIDES, OTHER_RESOURCE, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, OUTRANKED",
			`{"ip":"192.0.2.1","countryCode":"DE","resource":"GET /a"}`: "ALLOW land: OUTRANKED, OTHER_ENTITY, " +
				"OTHER_RESOURCE, INACTIVE, EXPIRED, OTHER_APPLICATION, DECIDES",
			`{"resource":"GET /p/{id}"}`: "DENY force: OTHER_RESOURCE, OTHER_RESOURCE, DECIDES, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, OTHER_RESOURCE",
			`{"userId":"u1","resource":"GET /p/{id}"}`: "ALLOW force: OTHER_RESOURCE, OTHER_RESOURCE, DECIDES, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, OTHER_RESOURCE",
			`{"ip":"::ffff:198.51.100.3","countryCode":"DE","resource":"GET /a"}`: "ALLOW : BYPASSED, OTHER_ENTITY, " +
				"OTHER_RESOURCE, INACTIVE, EXPIRED, OTHER_APPLICATION, BYPASSED",
			`{"resource":"GET *"}`: "ALLOW : OTHER_RESOURCE, OTHER_RESOURCE, OTHER_RESOURCE, " +
				"INACTIVE, EXPIRED, OTHER_APPLICATION, OTHER_RESOURCE",
		} {
			x := s.explain(body)
			by := ""
			if x.DecidedBy != nil {
				by = *x.DecidedBy
			}
			var reasons []string
			for _, r := range x.Rules {
				text := r.Reason
				if r.Used != nil {
					text += fmt.Sprint(" ", *r.Used, " ", *r.ResetMs)
				}
				reasons = append(reasons, text)
			}
			storetest.Equal(t, x.Decision+" "+by+": "+strings.Join(reasons, ", "), want, body)
		}
		// It counts nothing.
		if x := s.explain(`{"ip":"192.0.2.9","resource":"GET /a"}`); *x.Rules[0].Used != 0 || *x.Rules[0].Limit != 2 {
			t.Errorf("%+v", x.Rules[0])
		}
		for body, field := range map[string]string{`{"resource":"x"}`: "resource",
			`{"resource":"GET /a","ip":"here"}`: "ip", `{"resource":"GET /a","countryCode":"tr"}`: "countryCode"} {
			res, answer := s.Send("POST /admin/system/waf/explain", body, "x-auth", "admin", "X-Forwarded-For", admins)
			if res.StatusCode != 400 || !strings.Contains(answer, `"field":"`+field+`"`) {
				t.Errorf("%s: %d %s", body, res.StatusCode, answer)
			}
		}
	})
}

// D-WAF-20: operators see the fullest counters, and give one its whole limit again.
func TestCounters(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add("by-ip", "rate_limit", `"period":60000,"limit":4,"targetEntityType":"IP","targetResources":["GET /a"]`)
		s.add("by-country", "rate_limit", `"period":1000,"limit":10,"targetEntityType":"COUNTRY_CODE",`+
			`"targetResources":["GET /a"]`)
		list := func(query string) string {
			t.Helper()
			res, answer := s.Send("GET /admin/system/waf/counters?"+query, "", "x-auth", "admin", "X-Forwarded-For", admins)
			var got struct {
				Items []struct {
					Label, Entity, Phase, Node              string
					Used, Limit, PeriodMs, ResetMs, RetryMs int64
					Refused                                 bool
					Replica, Country                        *string
				}
				Silent []string
			}
			if res.StatusCode != 200 {
				return fmt.Sprint(res.StatusCode)
			}
			storetest.Must(t, json.Unmarshal([]byte(answer), &got))
			var all []string
			for _, c := range got.Items {
				if (c.Country != nil) != (c.Entity == "2001:db8::/64") || c.Phase != "owning" || c.Node == "" || c.Replica != nil {
					t.Errorf("%+v", c)
				}
				all = append(all, fmt.Sprintf("%s/%s %d of %d in %d, %d %d %t", c.Label, c.Entity, c.Used, c.Limit, c.PeriodMs,
					c.ResetMs, c.RetryMs, c.Refused))
			}
			if got.Silent == nil || len(got.Silent) > 0 {
				t.Errorf("%q are silent", got.Silent)
			}
			return strings.Join(all, "; ")
		}
		for range 3 {
			s.from("192.0.2.1", "GET /a", 200)
		}
		s.now.Add(500)
		s.from("192.0.2.1", "GET /a", 200)
		s.from("192.0.2.1", "GET /a", 429)
		s.from("192.0.2.9", "GET /a", 200)
		s.from("2001:db8::7", "GET /a", 200)
		full := "by-ip/192.0.2.1 4 of 4 in 60000, 59500 59500 true"
		country := "by-country/TR 4 of 10 in 1000, 500 0 false"
		others := "by-ip/192.0.2.9 1 of 4 in 60000, 60000 0 false; by-ip/2001:db8::/64 1 of 4 in 60000, 60000 0 false"
		for query, want := range map[string]string{"": full, "least=0.3": full + "; " + country,
			"least=0": full + "; " + country + "; " + others, "least=0&limit=1": full, "label=by-country&least=0": country,
			"entity=2001:db8::1&least=0": "by-ip/2001:db8::/64 1 of 4 in 60000, 60000 0 false", "label=none": "",
			"least=1.1": "400", "least=NaN": "400"} {
			storetest.Equal(t, list(query), want, query)
		}
		reset := func(body string, status int, want string) {
			t.Helper()
			res, answer := s.As("admin").Send("POST /admin/system/waf/counters/reset", body, "X-Forwarded-For", admins)
			if res.StatusCode != status || !strings.Contains(answer, want) {
				t.Errorf("%s: %d %s, want %d %s", body, res.StatusCode, answer, status, want)
			}
		}
		body := `{"label":"by-ip","entity":"192.0.2.1","reason":"a test"}`
		reset(`{"label":"by-ip","entity":"192.0.2.7","reason":"a test"}`, 404, "RECORD_NOT_FOUND")
		reset(`{"label":"none","entity":"192.0.2.1","reason":"a test"}`, 404, "RECORD_NOT_FOUND")
		s.from("192.0.2.1", "GET /a", 429)
		reset(body, 200, `{"data":{"usedBefore":4}}`)
		storetest.Equal(t, list("entity=192.0.2.1&least=0"), "", "after the reset")
		for range 4 {
			s.from("192.0.2.1", "GET /a", 200)
		}
		s.from("192.0.2.1", "GET /a", 429)
		rows := storetest.Value(s.audit.List(t.Context(), audit.Query{Action: "FIREWALL_COUNTER_RESET"},
			page.Query[audit.Place]{Limit: 9}))(t)
		if len(rows.Records) != 1 || rows.Records[0].Target != "by-ip/192.0.2.1" ||
			rows.Records[0].Detail != "used 4: a test" {
			t.Errorf("%+v", rows.Records)
		}
	})
}

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
	})
}
