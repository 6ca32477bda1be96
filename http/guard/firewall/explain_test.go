package firewall_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
			if got := x.Decision + " " + by + ": " + strings.Join(reasons, ", "); got != want {
				t.Errorf("%s:\n got %s\nwant %s", body, got, want)
			}
		}
		// It counts nothing.
		if x := s.explain(`{"ip":"192.0.2.9","resource":"GET /a"}`); *x.Rules[0].Used != 0 || *x.Rules[0].Limit != 2 {
			t.Errorf("%+v", x.Rules[0])
		}
		for body, field := range map[string]string{`{}`: "resource", `{"resource":"x"}`: "resource",
			`{"resource":"GET /a","ip":"here"}`: "ip", `{"resource":"GET /a","countryCode":"tr"}`: "countryCode"} {
			res, answer := s.Send("POST /admin/system/waf/explain", body, "x-auth", "admin", "X-Forwarded-For", admins)
			if res.StatusCode != 400 || !strings.Contains(answer, `"field":"`+field+`"`) {
				t.Errorf("%s: %d %s", body, res.StatusCode, answer)
			}
		}
		s.from(admins, "POST /admin/system/waf/explain", 403, "x-auth", "user")
	})
}
