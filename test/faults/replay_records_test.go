package faults

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// Records and lists.
var replaysOfRecords = []replay{
	{"CVE-2026-33503", "Kratos: a forged page token was inserted into ORDER BY", func(t *testing.T, s stage) {
		users := s.s.Count("users")
		for _, odd := range []string{"'", "' OR 1=1 --", "1); DROP TABLE users; --", "id DESC; SELECT pg_sleep(9)",
			"-1", "0x1",
			blackbox.B64.EncodeToString([]byte(`{"id":"' OR 1=1 --"}`)), blackbox.B64.EncodeToString([]byte("1 UNION SELECT 1")),
			"\x00", "%"} {
			for _, path := range []string{"/admin/list-users?cursor=", "/admin/audit?cursor=", "/admin/get-active-users?limit=",
				"/user/notifications?cursor=", "/admin/get-active-users?cursor=", "/admin/audit?action="} {
				a := s.Ask("GET", path+url.QueryEscape(odd), nil, s.boss)
				if a.Status != 400 && a.Status != 200 || len(a.Body) > 2 && a.Status == 200 && !strings.HasPrefix(path,
					"/admin/list") {
					t.Errorf("%s%q: %s", path, odd, a)
				}
			}
		}
		if n := s.s.Count("users"); n < users {
			t.Errorf("%d users of %d", n, users)
		}
		first := s.Ask("GET", "/admin/audit?limit=1", nil, s.boss).Is(t, 200, "")
		next := strings.SplitN(strings.SplitN(first.Header.Get("Link"), "<", 2)[1], ">", 2)[0]
		u := storetest.Value(url.Parse(next))(t)
		s.Ask("GET", u.Path+"?"+u.RawQuery, nil, s.boss).Is(t, 200, "") // a genuine one
	}, nil},
	{"CVE-2024-44906", "bun: a negative number after a minus became a comment in the statement",
		func(t *testing.T, s stage) {
			for i, text := range []string{"x'); DELETE FROM users;--", `\'; --`, "-1", "$1 ? ?0 :name %s",
				"/* */ -- \n;", "'||'"} {
				var kept struct {
					Data struct {
						Message  string
						Priority int
					}
				}
				s.Ask("POST", "/announcement/add", map[string]any{"title": fmt.Sprintf("%s of %d", text, i), "message": text,
					"startDate": "2026-01-01", "endDate": "2026-12-31", "isActive": true, "priority": -1}, s.boss).
					Is(t, 200, "").Read(t, &kept)
				if kept.Data.Message != text || kept.Data.Priority != -1 {
					t.Errorf("%q is kept as %+v", text, kept)
				}
			}
			for _, path := range []string{"/announcement/get?id=-1", "/admin/login-history?userId=x&limit=-1"} {
				if a := s.Ask("GET", path, nil, s.boss); a.Status != 400 && string(a.Body) != "[]" {
					t.Errorf("%s: %s", path, a)
				}
			}
		}, nil},
	{"CVE-2025-48075", "Fiber: a number in brackets in the name of a field was an index outside of the list",
		func(t *testing.T, s stage) {
			for _, name := range []string{"limit[18446744073704]", "limit[-1]", "limit.18446744073704", "test.-1",
				"a[]", "a[b][c]"} {
				s.Ask("GET", "/admin/get-active-users?"+url.QueryEscape(name)+"=1", nil, s.boss).Is(t, 200, "")
				s.Ask("POST", "/auth/login", name+"=1", blackbox.Headers{"Content-Type": "application/x-www-form-urlencoded"}).
					Is(t, 415, "UNSUPPORTED_MEDIA")
			}
			s.alive()
		}, nil},
	{"CVE-2025-54801", "Fiber: a large number in the name of a field allocated as much memory",
		func(t *testing.T, s stage) {
			before := s.PeakMemory()
			for _, n := range []string{"99999999", "999999999", "2147483647"} {
				s.Ask("GET", "/admin/get-active-users?limit["+n+"]=1&a."+n+"=1", nil, s.boss).Is(t, 200, "")
				s.Ask("POST", "/auth/login", `{"email[`+n+`]":"x","email":"a@b.test","password":"x"}`, nil).
					Is(t, 401, "INVALID_CREDENTIALS")
				s.Ask("POST", "/auth/login", "email["+n+"]=x", blackbox.Headers{"Content-Type": "multipart/form-data; boundary=x"}).
					Is(t, 415, "UNSUPPORTED_MEDIA")
			}
			if grown := s.PeakMemory() - before; grown > 256<<20 {
				t.Errorf("%d MiB more", grown>>20)
			}
		}, nil},
}
