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
			"least=1.1": "400", "least=NaN": "400", "limit=0": "400"} {
			if got := list(query); got != want {
				t.Errorf("%s:\n got %s\nwant %s", query, got, want)
			}
		}
		reset := func(caller, body string, status int, want string) {
			t.Helper()
			res, answer := s.Send("POST /admin/system/waf/counters/reset", body, "x-auth", caller, "X-Forwarded-For", admins)
			if res.StatusCode != status || !strings.Contains(answer, want) {
				t.Errorf("%s: %d %s, want %d %s", body, res.StatusCode, answer, status, want)
			}
		}
		body := `{"label":"by-ip","entity":"192.0.2.1","reason":"a test"}`
		reset("user", body, 403, "")
		reset("admin", `{"label":"by-ip","entity":"192.0.2.7","reason":"a test"}`, 404, "RECORD_NOT_FOUND")
		reset("admin", `{"label":"none","entity":"192.0.2.1","reason":"a test"}`, 404, "RECORD_NOT_FOUND")
		reset("admin", `{"label":"by-ip","entity":"192.0.2.1"}`, 400, `"field":"reason"`)
		s.from("192.0.2.1", "GET /a", 429)
		reset("admin", body, 200, `{"data":{"usedBefore":4}}`)
		if got := list("entity=192.0.2.1&least=0"); got != "" {
			t.Errorf("after the reset: %s", got)
		}
		for range 4 {
			s.from("192.0.2.1", "GET /a", 200)
		}
		s.from("192.0.2.1", "GET /a", 429)
		rows, err := s.audit.List(t.Context(), audit.Query{Action: "FIREWALL_COUNTER_RESET"},
			page.Query[audit.Place]{Limit: 9})
		storetest.Must(t, err)
		if len(rows.Records) != 1 || rows.Records[0].Target != "by-ip/192.0.2.1" ||
			rows.Records[0].Detail != "used 4: a test" {
			t.Errorf("%+v", rows.Records)
		}
	})
}
