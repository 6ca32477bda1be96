package office

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// All metrics follow the conventions of Prometheus, and count events correctly.
func TestMetricsFollowConventionsAndCount(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		addr := porttest.Free(t)
		n := s.Start("METRICS_ADDR="+addr, "MFA_CHALLENGE_ATTEMPTS=3")
		boss, demo := blackbox.Admin(t, s, n), s.Seeded("user")
		f := n.Login(t, demo)
		for range 3 {
			n.Complete(t, f, f.Method(t, "SMS"), blackbox.WrongFor(n.Code(t, demo, "SMS")))
		}
		socket := n.Socket(t, n.Login(t, demo))
		defer socket.Close()
		blackbox.Rule(t, n, boss, "nobody", "blacklist", map[string]any{"targetResources": []string{"GET " +
			blackbox.KeysPath}})
		n.Do(t, "GET", blackbox.KeysPath, nil, nil).Is(t, 403, "ACCESS_DENIED")
		n.Do(t, "GET", "/auth/sessions", nil, nil).Is(t, 401, "UNAUTHENTICATED")

		problems := storetest.Value(promlint.New(bytes.NewReader(blackbox.Exported(t, addr))).Lint())(t)
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "castellan_") { // the others belong to the runtime and the pools
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
		got := blackbox.Scrape(t, addr)
		for want, at := range map[string]float64{
			"completed": blackbox.Value(got, "castellan_challenges_ended_total", "outcome=completed"),
			"locked":    blackbox.Value(got, "castellan_challenges_ended_total", "outcome=locked"),
			"deny":      blackbox.Value(got, "castellan_firewall_decisions_total", "outcome=deny"),
			"sockets":   blackbox.Value(got, "castellan_sockets_open"),
			"refused": blackbox.Value(got, "castellan_http_requests_total", "method=GET", "route=/auth/sessions", "status=4xx",
				"code=UNAUTHENTICATED"),
		} {
			storetest.Equal(t, at, 1, want, "1")
		}
		seeds := blackbox.Value(got, "castellan_commit_functions_total", "write=user.Add") +
			blackbox.Value(got, "castellan_commit_functions_total", "write=user.Grant") +
			blackbox.Value(got, "castellan_commit_functions_total", "write=password.SetKinds")
		storetest.Equal(t, blackbox.Value(got, "castellan_commit_functions_total"), seeds,
			"transactions that left the executor")
		for name, labels := range map[string][]string{
			"castellan_challenges_started_total":      nil,
			"castellan_firewall_decisions_total":      {"outcome=allow"},
			"castellan_actors_active":                 {"kind=challenge"},
			"castellan_actors_activated_total":        {"kind=user"},
			"castellan_commit_duration_seconds":       nil,
			"castellan_commit_batch_units":            nil,
			"castellan_commit_statements_total":       nil,
			"castellan_password_hash_slots":           nil,
			"castellan_password_hash_info":            {"vectors=" + argon2id.Vectors()},
			"castellan_http_request_duration_seconds": {"method=POST", "route=/auth/login"},
			"go_sql_max_open_connections":             nil,
			"go_goroutines":                           nil,
			"castellan_build_info":                    nil,
		} {
			if blackbox.Value(got, name, labels...) < 1 {
				t.Errorf("%s %v is %v", name, labels, blackbox.Value(got, name, labels...))
			}
		}
	})
}

// Values that clients invent create no series: paths, methods, queries, ids in a path, headers.
func TestClientValuesCreateNoMetricSeries(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	addr := porttest.Free(t)
	n := s.Start("METRICS_ADDR=" + addr)
	boss := blackbox.Admin(t, s, n)
	target := strings.TrimPrefix(n.URL, "http://")
	hostile := func(i int) {
		n.Do(t, "GET", fmt.Sprintf("/never/%d/served", i), nil, nil)
		n.Do(t, "POST", fmt.Sprintf("/auth/login/%d", i), map[string]any{"a": i}, nil)
		n.Do(t, "GET", fmt.Sprintf("/auth/sessions?q=%d", i), nil, nil)
		n.Do(t, "GET", fmt.Sprintf("/admin/jobs/%d", i), nil, boss)
		n.Do(t, "GET", fmt.Sprintf("/flags/%d.svg", i), nil, nil)
		n.Do(t, "GET", fmt.Sprintf("/static/%d", i), nil,
			blackbox.Headers{"x-auth": fmt.Sprint(i), "tenant-id": fmt.Sprint(i), "accept-language": fmt.Sprint(i)})
		for _, line := range []string{fmt.Sprintf("BREW%d /auth/login", i), fmt.Sprintf("GET /%%6%d//../;x=%d", i%10, i),
			fmt.Sprintf("TRACE /x%d", i), fmt.Sprintf("PUT http://evil%d/x", i)} {
			c := storetest.Value(net.Dial("tcp", target))(t)
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: h%d\r\nConnection: close\r\n\r\n", line, i)
			c.Read(make([]byte, 1))
			c.Close()
		}
	}
	series := func() map[string]bool {
		all := map[string]bool{}
		for name, family := range blackbox.Scrape(t, addr) {
			if strings.HasPrefix(name, "castellan_jobs_") {
				continue // the service has work of its own meanwhile
			}
			for _, m := range family.GetMetric() {
				all[fmt.Sprint(name, m.GetLabel())] = true
			}
		}
		return all
	}
	hostile(0)
	first := series()
	for i := range 30 {
		hostile(i + 1)
	}
	for _, name := range slices.Sorted(maps.Keys(series())) {
		if !first[name] {
			t.Errorf("a new series: %s", name)
		}
	}
	if got := blackbox.Scrape(t, addr); blackbox.Value(got, "castellan_http_requests_total", "route=*",
		"method=GET") < 31 || blackbox.Value(got, "castellan_http_requests_total", "route=*", "method=UNKNOWN") < 31 {
		t.Errorf("requests that no route serves are not counted under one: %v", got["castellan_http_requests_total"])
	}
}
